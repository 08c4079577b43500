package main

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// times collects latencies of one kind of request.
type times struct {
	sync.Mutex
	taken []time.Duration
}

func (t *times) time(work func() error) error {
	start := time.Now()
	err := work()
	t.Lock()
	t.taken = append(t.taken, time.Since(start))
	t.Unlock()
	return err
}

// soak is what a busy cluster does to its API server: each client creates, reads, changes, lists and deletes objects of
// its own; watchers count every event; one watcher takes its headers and never reads again.
func soak() map[string]float64 {
	end := time.Now().Add(time.Duration(*seconds) * time.Second)
	var failures, events atomic.Int64
	var lists, gets, writes times
	var ready, group sync.WaitGroup
	ready.Add(*watchers)
	for w := 0; w < *watchers; w++ {
		go watch(client(), &events, &ready)
	}
	ready.Wait()
	stuck, err := open(client(), "GET", collection+"?watch=1&resourceVersion="+revision(client()), nil)
	must(err)
	defer stuck.Body.Close()
	fail := func(err error) {
		if err != nil && failures.Add(1) <= 5 {
			fmt.Fprintln(os.Stderr, "load:", err)
		}
	}
	for w := 0; w < *workers; w++ {
		group.Add(1)
		go func(w int) {
			defer group.Done()
			c := client()
			for i := 0; time.Now().Before(end); i++ {
				name := fmt.Sprintf("%s-%d-%d", *prefix, w, i%50)
				path := collection + "/" + name
				request := func(t *times, method, path string, body []byte) {
					fail(t.time(func() error { _, err := try(c, method, path, body); return err }))
				}
				request(&writes, "POST", collection, configMap(name, i))
				request(&gets, "GET", path, nil)
				request(&writes, "PUT", path, configMap(name, i+1))
				request(&gets, "GET", path, nil)
				if i%10 == 0 {
					request(&lists, "GET", collection+"?limit=500", nil)
				}
				request(&writes, "DELETE", path, nil)
			}
		}(w)
	}
	group.Wait()
	found := map[string]float64{
		"failures": float64(failures.Load()), "events_per_s": float64(events.Load()) / float64(*seconds),
		"requests_per_s": float64(len(lists.taken)+len(gets.taken)+len(writes.taken)) / float64(*seconds),
		"writes":         float64(len(writes.taken)),
	}
	for name, t := range map[string]*times{"list": &lists, "get": &gets, "write": &writes} {
		for _, percent := range []float64{50, 99, 99.9} {
			found[fmt.Sprintf("%s_p%g_ms", name, percent)] = milliseconds(percentile(t.taken, percent))
		}
	}
	return found
}

func manyWatches() map[string]float64 {
	var opened, events atomic.Int64
	c := client()
	since := revision(c)
	begun := time.Now()
	gate := make(chan struct{}, 32)
	var ready sync.WaitGroup
	ready.Add(*count)
	for w := 0; w < *count; w++ {
		gate <- struct{}{}
		go func() {
			own := client()
			response, err := open(own, "GET", collection+"?watch=1&resourceVersion="+since, nil)
			<-gate
			ready.Done()
			if err != nil || response.StatusCode != http.StatusOK {
				fmt.Fprintln(os.Stderr, "load:", err)
				return
			}
			opened.Add(1)
			reader := bufio.NewReaderSize(response.Body, 4096)
			for {
				if _, err := reader.ReadSlice('\n'); err == nil {
					events.Add(1)
				} else if err != bufio.ErrBufferFull {
					return
				}
			}
		}()
	}
	ready.Wait()
	opening := time.Since(begun)
	const made = 10
	begun = time.Now()
	var create times
	for i := 0; i < made; i++ {
		must(create.time(func() error {
			_, err := try(c, "POST", collection, configMap(fmt.Sprintf("%s-%d", *prefix, i), i))
			return err
		}))
	}
	for events.Load() < made*opened.Load() && time.Since(begun) < time.Minute {
		time.Sleep(time.Millisecond)
	}
	found := map[string]float64{
		"opened": float64(opened.Load()), "opens_per_s": float64(*count) / opening.Seconds(),
		"events": float64(events.Load()), "events_per_s": float64(events.Load()) / time.Since(begun).Seconds(),
		"create_p50_ms": milliseconds(percentile(create.taken, 50)), "create_max_ms": milliseconds(percentile(create.taken, 100)),
	}
	for i := 0; i < made; i++ {
		do(c, "DELETE", fmt.Sprintf("%s/%s-%d", collection, *prefix, i), nil)
	}
	return found
}
