// SPDX-License-Identifier: MIT
//
// go-redis against a server at the port given: each type, a pipeline, a transaction, WATCH, an error.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

func check(condition bool, what ...any) {
	if !condition {
		fmt.Fprintln(os.Stderr, what...)
		os.Exit(1)
	}
}

func main() {
	ctx := context.Background()
	c := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + os.Args[1], ReadTimeout: time.Minute})
	defer c.Close()
	check(c.Ping(ctx).Val() == "PONG", "PING")
	check(c.SetNX(ctx, "k", "v", 100*time.Second).Val() && c.TTL(ctx, "k").Val() > 90*time.Second, "SETNX")
	check(!c.SetNX(ctx, "k", "w", 0).Val() && c.Append(ctx, "k", "w").Val() == 2, "NX of one that is there")
	check(c.IncrBy(ctx, "n", 41).Val() == 41, "INCRBY")
	check(c.Get(ctx, "nothing").Err() == redis.Nil, "a key that is not there")
	check(c.HSet(ctx, "h", "a", 1, "b", 2).Val() == 2 && len(c.HGetAll(ctx, "h").Val()) == 2, "hashes")
	check(c.ZAdd(ctx, "z", redis.Z{Score: 2.5, Member: "x"}, redis.Z{Score: 1, Member: "y"}).Val() == 2, "ZADD")
	ranked := c.ZRangeWithScores(ctx, "z", 0, -1).Val()
	check(len(ranked) == 2 && ranked[0].Member == "y" && ranked[1].Score == 2.5, "ZRANGE", ranked)
	_, err := c.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i := 0; i < 1000; i++ {
			p.Set(ctx, fmt.Sprint("p", i), i, 0)
		}
		return nil
	})
	check(err == nil && c.Get(ctx, "p999").Val() == "999", "a pipeline", err)
	tries := 0
	err = c.Watch(ctx, func(tx *redis.Tx) error {
		tries++
		c.Incr(ctx, "n")
		_, err := tx.TxPipelined(ctx, func(p redis.Pipeliner) error { p.Set(ctx, "n", "lost", 0); return nil })
		return err
	}, "n")
	check(err == redis.TxFailedErr && tries == 1 && c.Get(ctx, "n").Val() == "42", "WATCH", err)
	replies, err := c.TxPipelined(ctx, func(p redis.Pipeliner) error { p.Incr(ctx, "n"); p.HGet(ctx, "h", "a"); return nil })
	check(err == nil && replies[0].(*redis.IntCmd).Val() == 43, "EXEC", err)
	seen := 0
	for keys := c.Scan(ctx, 0, "p*", 100).Iterator(); keys.Next(ctx); {
		seen++
	}
	check(seen == 1000, "SCAN", seen)
	err = c.LPush(ctx, "k", "x").Err()
	check(err != nil && strings.HasPrefix(err.Error(), "ERR unknown command"), "a command that is not there", err)
	fmt.Println("go-redis: ok")
}
