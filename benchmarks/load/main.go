// load drives any Kubernetes API server with plain HTTP and prints one JSON line of figures.
//
//	load -kubeconfig-server URL -token T|-cert C -key K -ca CA [-n 2000] [-workers 16] [-watchers 10]
//
// The same program measures the embedded server and the real one, so that the client's own cost is the same for both.
package main

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"sort"
	"sync"
	"sync/atomic"
	"time"
)

var (
	server   = flag.String("server", "", "URL of the API server")
	token    = flag.String("token", "", "bearer token")
	certFile = flag.String("cert", "", "client certificate")
	keyFile  = flag.String("key", "", "client key")
	caFile   = flag.String("ca", "", "authority of the server's certificate; empty: not verified")
	count    = flag.Int("n", 2000, "objects")
	workers  = flag.Int("workers", 16, "requests in flight")
	watchers = flag.Int("watchers", 10, "watches open meanwhile")
	prefix   = flag.String("prefix", "bench", "names begin with this")
)

const collection = "/api/v1/namespaces/default/configmaps"

func client() *http.Client {
	config := &tls.Config{InsecureSkipVerify: *caFile == ""}
	if *caFile != "" {
		pem, err := os.ReadFile(*caFile)
		must(err)
		config.RootCAs = x509.NewCertPool()
		config.RootCAs.AppendCertsFromPEM(pem)
	}
	if *certFile != "" {
		pair, err := tls.LoadX509KeyPair(*certFile, *keyFile)
		must(err)
		config.Certificates = []tls.Certificate{pair}
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: config, MaxIdleConnsPerHost: 64, ForceAttemptHTTP2: true}}
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}

func do(c *http.Client, method, path string, body []byte) []byte {
	request, err := http.NewRequest(method, *server+path, bytes.NewReader(body))
	must(err)
	request.Header.Set("Content-Type", "application/json")
	if *token != "" {
		request.Header.Set("Authorization", "Bearer "+*token)
	}
	response, err := c.Do(request)
	must(err)
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	must(err)
	if response.StatusCode >= 300 && response.StatusCode != 404 {
		must(fmt.Errorf("%s %s: %d %s", method, path, response.StatusCode, data))
	}
	return data
}

// each runs work(i) for i < n on all workers and returns the rate and the median latency.
func each(n int, work func(i int)) (perSecond, medianMs float64) {
	var next atomic.Int64
	var group sync.WaitGroup
	times := make([]time.Duration, n)
	begun := time.Now()
	for w := 0; w < *workers; w++ {
		group.Add(1)
		go func() {
			defer group.Done()
			for {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				start := time.Now()
				work(i)
				times[i] = time.Since(start)
			}
		}()
	}
	group.Wait()
	total := time.Since(begun)
	sort.Slice(times, func(a, b int) bool { return times[a] < times[b] })
	return float64(n) / total.Seconds(), float64(times[n/2].Microseconds()) / 1000
}

func watch(c *http.Client, seen *atomic.Int64, ready *sync.WaitGroup) {
	version := struct {
		Metadata struct{ ResourceVersion string }
	}{}
	must(json.Unmarshal(do(c, "GET", collection+"?limit=1", nil), &version))
	request, err := http.NewRequest("GET", *server+collection+"?watch=1&resourceVersion="+version.Metadata.ResourceVersion, nil)
	must(err)
	if *token != "" {
		request.Header.Set("Authorization", "Bearer "+*token)
	}
	response, err := c.Do(request)
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

func main() {
	flag.Parse()
	figures := map[string]float64{}
	var seen atomic.Int64
	var ready sync.WaitGroup
	ready.Add(*watchers)
	for w := 0; w < *watchers; w++ {
		go watch(client(), &seen, &ready)
	}
	ready.Wait()
	c := client()
	body := func(i int) []byte {
		return []byte(fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"%s-%06d","labels":{"app":"bench"}},"data":{"a":"%0400d"}}`, *prefix, i, i))
	}
	begun := time.Now()
	figures["creates_per_s"], figures["create_ms"] = each(*count, func(i int) { do(c, "POST", collection, body(i)) })
	expected := int64(*count * *watchers)
	for seen.Load() < expected && time.Since(begun) < time.Minute {
		time.Sleep(time.Millisecond)
	}
	figures["events_per_s"] = float64(seen.Load()) / time.Since(begun).Seconds()
	figures["gets_per_s"], figures["get_ms"] = each(*count*2, func(i int) {
		do(c, "GET", fmt.Sprintf("%s/%s-%06d", collection, *prefix, i%*count), nil)
	})
	lists := make([]float64, 15)
	for i := range lists {
		start := time.Now()
		figures["list_bytes"] = float64(len(do(c, "GET", collection+"?labelSelector=app%3Dbench&limit=2000", nil)))
		lists[i] = float64(time.Since(start).Microseconds()) / 1000
	}
	sort.Float64s(lists)
	figures["list_2000_ms"] = lists[len(lists)/2]
	figures["deletes_per_s"], _ = each(*count, func(i int) {
		do(c, "DELETE", fmt.Sprintf("%s/%s-%06d", collection, *prefix, i), nil)
	})
	line, _ := json.Marshal(figures)
	fmt.Println(string(line))
}
