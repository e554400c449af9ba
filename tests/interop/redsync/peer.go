// peer PORT...; see checks.py.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

var (
	clients []*redis.Client
	locker  *redsync.Redsync
	mutexes = map[string]*redsync.Mutex{}
	ctx     = context.Background()
)

func connect(ports []string) {
	var pools []redsyncredis.Pool
	for _, port := range ports {
		client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + port})
		clients = append(clients, client)
		pools = append(pools, goredis.NewPool(client))
	}
	locker = redsync.New(pools...)
}

// What the library tells by an error; no is the answer when it only refused.
func answer(err error, no string) string {
	var broken *redsync.RedisError
	if err == nil {
		return "ok"
	} else if errors.As(err, &broken) {
		return "error " + strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	return no
}

func options(lease int) []redsync.Option {
	return []redsync.Option{
		redsync.WithExpiry(time.Duration(lease) * time.Millisecond),
		// By default a server has 1/20 of the lease to answer.
		redsync.WithTimeoutFactor(0.5),
	}
}

func lock(name string, wait, lease int) string {
	const delay = 10 // ms; it counts tries, not time
	mutexes[name] = locker.NewMutex(name, append(options(lease),
		redsync.WithTries(1+wait*2/(3*delay)),
		redsync.WithRetryDelayFunc(func(int) time.Duration {
			return time.Duration((delay + rand.Float64()*delay) * 1e6)
		}))...)
	return answer(mutexes[name].Lock(), "busy")
}

func unlock(name string) string {
	_, err := mutexes[name].Unlock()
	return answer(err, "lost")
}

func extend(name string, lease int) string {
	// The lease belongs to the mutex: make another one of the same hold.
	value := redsync.WithValue(mutexes[name].Value())
	mutexes[name] = locker.NewMutex(name, append(options(lease), value)...)
	_, err := mutexes[name].Extend()
	return answer(err, "lost")
}

func force(name string) string {
	freed := int64(0)
	for _, client := range clients {
		freed += client.Del(ctx, name).Val()
	}
	if freed == 0 {
		return "free"
	}
	return "ok"
}

func ttl(name string) string {
	longest := time.Duration(-1)
	for _, client := range clients {
		left, err := client.PTTL(ctx, name).Result()
		if err != nil {
			return "error " + err.Error()
		}
		longest = max(longest, left)
	}
	// Below zero they are no milliseconds.
	if longest < 0 {
		return "-1"
	}
	return strconv.FormatInt(longest.Milliseconds(), 10)
}

func increment(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	number, err := strconv.Atoi(string(text))
	if err != nil {
		return err
	}
	return os.WriteFile(path, []byte(strconv.Itoa(number+1)), 0o644)
}

func count(name string, n int) string {
	for ; n > 0; n-- {
		if result := lock(name, 60000, 30000); result != "ok" {
			return result
		}
		if err := increment(name); err != nil {
			return "error " + err.Error()
		}
		if result := unlock(name); result != "ok" {
			return result
		}
	}
	return "ok"
}

func run(command, name string, a, b int) string {
	switch command {
	case "lock":
		return lock(name, a, b)
	case "unlock":
		return unlock(name)
	case "extend":
		return extend(name, a)
	case "force":
		return force(name)
	case "ttl":
		return ttl(name)
	case "count":
		return count(name, a)
	}
	return "error what?"
}

func main() {
	connect(os.Args[1:])
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		var command, name string
		var a, b int
		// There are fewer numbers than that in most lines.
		_, _ = fmt.Sscan(in.Text(), &command, &name, &a, &b)
		fmt.Println(run(command, name, a, b))
	}
}
