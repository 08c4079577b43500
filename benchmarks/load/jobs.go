package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"sync"
	"time"
)

// jobs makes -n Jobs of -pods pods each, which run `true`, and waits until the last is complete.
func jobs() map[string]float64 {
	const path = "/apis/batch/v1/namespaces/default/jobs"
	c := client()
	var done sync.WaitGroup
	done.Add(*count)
	response, err := open(client(), "GET", path+"?watch=1&resourceVersion="+revision(c), nil)
	must(err)
	go func() {
		type event struct {
			Object struct {
				Metadata struct{ Name string }
				Status   struct{ CompletionTime string }
			}
		}
		complete := map[string]bool{}
		lines := bufio.NewScanner(response.Body)
		lines.Buffer(nil, 4<<20)
		for lines.Scan() {
			var e event
			must(json.Unmarshal(lines.Bytes(), &e))
			if name := e.Object.Metadata.Name; e.Object.Status.CompletionTime != "" && !complete[name] {
				complete[name] = true
				done.Done()
			}
		}
	}()
	begun := time.Now()
	made, _ := each(*count, func(i int) {
		do(c, "POST", path, []byte(fmt.Sprintf(`{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"%s-%d"},"spec":{
			"completions":%d,"parallelism":%d,"template":{"spec":{"restartPolicy":"Never","containers":[
			{"name":"c","image":"busybox","command":["true"]}]}}}}`, *prefix, i, *pods, *pods)))
	})
	done.Wait()
	seconds := time.Since(begun).Seconds()
	return map[string]float64{"jobs_per_s": float64(*count) / seconds, "seconds": seconds, "creates_per_s": made}
}
