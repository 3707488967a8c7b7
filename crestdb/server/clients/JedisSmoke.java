// SPDX-License-Identifier: MIT
//
// jedis against a server at the port given: each type, a pipeline, a transaction, WATCH, a pool, an error.
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.JedisPooled;
import redis.clients.jedis.Pipeline;
import redis.clients.jedis.Response;
import redis.clients.jedis.Transaction;
import redis.clients.jedis.exceptions.JedisDataException;
import redis.clients.jedis.params.ScanParams;
import redis.clients.jedis.params.SetParams;
import redis.clients.jedis.resps.ScanResult;

public class JedisSmoke {
    private static void check(boolean condition, String what) {
        if (!condition) throw new AssertionError(what);
    }

    public static void main(String[] args) {
        int port = Integer.parseInt(args[0]);
        try (Jedis c = new Jedis("127.0.0.1", port, 60_000); Jedis other = new Jedis("127.0.0.1", port, 60_000)) {
            check("PONG".equals(c.ping()), "PING");
            check("OK".equals(c.set("k", "v", SetParams.setParams().nx().ex(100))), "SET NX EX");
            check(c.set("k", "w", SetParams.setParams().nx()) == null && c.ttl("k") > 90, "NX of one that is there");
            check(c.incrBy("n", 40) == 40 && c.incr("n") == 41 && c.append("k", "w") == 2, "INCR, APPEND");
            check(c.hset("h", Map.of("a", "1", "b", "2")) == 2 && "2".equals(c.hget("h", "b")), "HSET");
            check(c.hgetAll("h").equals(Map.of("a", "1", "b", "2")), "HGETALL");
            check(c.zadd("z", Map.of("x", 2.5, "y", 1.0)) == 2, "ZADD");
            check(c.zrange("z", 0, -1).equals(Arrays.asList("y", "x")) && c.zscore("z", "x") == 2.5, "ZRANGE");
            Pipeline p = c.pipelined();
            for (int i = 0; i < 1000; i++) p.set("p" + i, "v" + i);
            Response<String> got = p.get("p999");
            p.sync();
            check("v999".equals(got.get()), "a pipeline");
            c.watch("n");
            other.incr("n");
            Transaction t = c.multi();
            t.set("n", "lost");
            check(t.exec() == null && "42".equals(c.get("n")), "WATCH sees the other client");
            t = c.multi();
            t.incr("n");
            t.hget("h", "a");
            List<Object> replies = t.exec();
            check(replies.equals(Arrays.asList(43L, "1")), "EXEC " + replies);
            int seen = 0;
            String cursor = ScanParams.SCAN_POINTER_START;
            do {
                ScanResult<String> some = c.scan(cursor, new ScanParams().match("p*").count(100));
                seen += some.getResult().size();
                cursor = some.getCursor();
            } while (!cursor.equals(ScanParams.SCAN_POINTER_START));
            check(seen == 1000, "SCAN: " + seen);
            try {
                c.lpush("k", "x");
                check(false, "a command that is not there");
            } catch (JedisDataException e) {
                check(e.getMessage().startsWith("ERR unknown command"), e.getMessage());
            }
        }
        try (JedisPooled pool = new JedisPooled("127.0.0.1", port)) {
            check("43".equals(pool.get("n")) && pool.del("n") == 1 && !pool.exists("n"), "a pool");
        }
        System.out.println("jedis: ok");
    }
}
