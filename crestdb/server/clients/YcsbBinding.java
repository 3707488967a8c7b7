// SPDX-License-Identifier: MIT
//
// YCSB over jedis: a record is a hash, and one sorted set, whose scores are all 0, has the keys in their order for
// scans. YCSB verifies what is read (dataintegrity=true); scans are verified here.
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.Vector;
import redis.clients.jedis.Jedis;
import site.ycsb.ByteIterator;
import site.ycsb.DB;
import site.ycsb.DBException;
import site.ycsb.Status;
import site.ycsb.StringByteIterator;

public class YcsbBinding extends DB {
    private static final String ORDER = "the keys in their order";
    private Jedis server;

    @Override
    public void init() throws DBException {
        server = new Jedis("127.0.0.1", Integer.parseInt(getProperties().getProperty("port")), 120_000);
    }

    @Override
    public void cleanup() throws DBException {
        server.close();
    }

    private static void add(Map<String, String> from, Set<String> fields, Map<String, ByteIterator> result) {
        for (Map.Entry<String, String> e : from.entrySet())
            if (fields == null || fields.contains(e.getKey()))
                result.put(e.getKey(), new StringByteIterator(e.getValue()));
    }

    @Override
    public Status read(String table, String key, Set<String> fields, Map<String, ByteIterator> result) {
        if (fields == null) {
            add(server.hgetAll(key), null, result);
        } else {
            String[] names = fields.toArray(new String[0]);
            List<String> values = server.hmget(key, names);
            for (int i = 0; i < names.length; i++)
                if (values.get(i) != null) result.put(names[i], new StringByteIterator(values.get(i)));
        }
        return result.isEmpty() ? Status.ERROR : Status.OK;
    }

    @Override
    public Status scan(String table, String start, int count, Set<String> fields,
                       Vector<HashMap<String, ByteIterator>> result) {
        List<String> keys = server.zrangeByLex(ORDER, "[" + start, "+", 0, count);
        if (keys.isEmpty() || keys.size() > count) return Status.ERROR;
        String last = "";
        for (String key : keys) {
            if (key.compareTo(start) < 0 || key.compareTo(last) <= 0) return Status.UNEXPECTED_STATE;
            last = key;
            Map<String, String> record = server.hgetAll(key);
            if (record.isEmpty()) return Status.UNEXPECTED_STATE;
            HashMap<String, ByteIterator> row = new HashMap<>();
            add(record, fields, row);
            result.add(row);
        }
        return Status.OK;
    }

    @Override
    public Status update(String table, String key, Map<String, ByteIterator> values) {
        // No field is new: all are there since the insert.
        return server.hset(key, StringByteIterator.getStringMap(values)) == 0 ? Status.OK : Status.UNEXPECTED_STATE;
    }

    @Override
    public Status insert(String table, String key, Map<String, ByteIterator> values) {
        Map<String, String> record = StringByteIterator.getStringMap(values);
        if (server.hset(key, record) != record.size()) return Status.UNEXPECTED_STATE;
        return server.zadd(ORDER, 0, key) == 1 ? Status.OK : Status.UNEXPECTED_STATE;
    }

    @Override
    public Status delete(String table, String key) {
        return server.del(key) == 1 && server.zrem(ORDER, key) == 1 ? Status.OK : Status.ERROR;
    }
}
