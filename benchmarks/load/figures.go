package main

import (
	"bufio"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

func watch(c *http.Client, seen *atomic.Int64, ready *sync.WaitGroup) {
	response, err := open(c, "GET", collection+"?watch=1&resourceVersion="+revision(c), nil)
	must(err)
	ready.Done()
	reader := bufio.NewReaderSize(response.Body, 1<<20)
	for {
		if _, err := reader.ReadSlice('\n'); err == nil {
			seen.Add(1)
		} else if err != bufio.ErrBufferFull {
			return
		}
	}
}

func figures() map[string]float64 {
	found := map[string]float64{}
	var seen atomic.Int64
	var ready sync.WaitGroup
	ready.Add(*watchers)
	for w := 0; w < *watchers; w++ {
		go watch(client(), &seen, &ready)
	}
	ready.Wait()
	c := client()
	name := func(i int) string { return fmt.Sprintf("%s-%06d", *prefix, i) }
	begun := time.Now()
	found["creates_per_s"], found["create_ms"] = each(*count, func(i int) { do(c, "POST", collection, configMap(name(i), i)) })
	expected := int64(*count * *watchers)
	for seen.Load() < expected && time.Since(begun) < time.Minute {
		time.Sleep(time.Millisecond)
	}
	found["events_per_s"] = float64(seen.Load()) / time.Since(begun).Seconds()
	if seen.Load() != expected {
		must(fmt.Errorf("%d of %d watch events came", seen.Load(), expected))
	}
	found["gets_per_s"], found["get_ms"] = each(*count*4, func(i int) { do(c, "GET", collection+"/"+name(i%*count), nil) })
	lists := make([]time.Duration, 25)
	for i := range lists {
		start := time.Now()
		found["list_bytes"] = float64(len(do(c, "GET", collection+"?labelSelector=app%3Dbench&limit=2000", nil)))
		lists[i] = time.Since(start)
	}
	found["list_2000_ms"] = milliseconds(percentile(lists, 50))
	found["deletes_per_s"], _ = each(*count, func(i int) { do(c, "DELETE", collection+"/"+name(i), nil) })
	return found
}

func fill() map[string]float64 {
	c := client()
	space := func(i int) string { return fmt.Sprintf("%s-%d", *prefix, i%*namespaces) }
	for i := 0; i < *namespaces; i++ {
		do(c, "POST", "/api/v1/namespaces", []byte(fmt.Sprintf(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"%s"}}`, space(i))))
	}
	rate, _ := each(*count, func(i int) {
		do(c, "POST", "/api/v1/namespaces/"+space(i)+"/configmaps", configMap(fmt.Sprintf("%s-%06d", *prefix, i), i))
	})
	return map[string]float64{"creates_per_s": rate}
}
