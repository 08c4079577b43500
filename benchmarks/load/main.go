// load drives any Kubernetes API server with plain HTTP and prints one JSON line of figures.
//
//	load -server URL (-token T | -cert C -key K) [-ca CA] MODE
//
//	figures   creates, watch events, gets, lists and deletes of ConfigMaps
//	fill      makes -n ConfigMaps, spread over -namespaces namespaces, and leaves them there
//	soak      readers, writers, listers and watchers for -seconds, one watcher that never reads among them
//	jobs      makes -n Jobs of -pods pods that run `true`, and waits for their end
//	watches   opens -n watches, makes a few objects, counts what arrives
//
// The same program measures the embedded server and the real one, so that the client's own cost is the same for both.
package main

import (
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
	server     = flag.String("server", "", "URL of the API server")
	token      = flag.String("token", "", "bearer token")
	certFile   = flag.String("cert", "", "client certificate")
	keyFile    = flag.String("key", "", "client key")
	caFile     = flag.String("ca", "", "authority of the server's certificate; empty: not verified")
	count      = flag.Int("n", 2000, "objects or watches")
	workers    = flag.Int("workers", 16, "requests in flight")
	watchers   = flag.Int("watchers", 10, "watches open meanwhile")
	namespaces = flag.Int("namespaces", 20, "namespaces to fill")
	pods       = flag.Int("pods", 4, "pods of each job")
	seconds    = flag.Int("seconds", 60, "how long to soak")
	prefix     = flag.String("prefix", "bench", "names begin with this")
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

func open(c *http.Client, method, path string, body []byte) (*http.Response, error) {
	request, err := http.NewRequest(method, *server+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	if *token != "" {
		request.Header.Set("Authorization", "Bearer "+*token)
	}
	return c.Do(request)
}

func try(c *http.Client, method, path string, body []byte) ([]byte, error) {
	response, err := open(c, method, path, body)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode >= 300 {
		err = fmt.Errorf("%s %s: %d %s", method, path, response.StatusCode, data)
	}
	return data, err
}

func do(c *http.Client, method, path string, body []byte) []byte {
	data, err := try(c, method, path, body)
	must(err)
	return data
}

// A ConfigMap that is 900 bytes when it is stored, with the fields that the server adds.
func configMap(name string, i int) []byte {
	return []byte(fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"%s","labels":{"app":"bench"}},"data":{"a":"%0400d"}}`, name, i))
}

func revision(c *http.Client) string {
	var list struct {
		Metadata struct{ ResourceVersion string }
	}
	must(json.Unmarshal(do(c, "GET", collection+"?limit=1", nil), &list))
	return list.Metadata.ResourceVersion
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
	return float64(n) / total.Seconds(), milliseconds(percentile(times, 50))
}

func percentile(times []time.Duration, percent float64) time.Duration {
	if len(times) == 0 {
		return 0
	}
	sort.Slice(times, func(a, b int) bool { return times[a] < times[b] })
	return times[min(len(times)-1, int(float64(len(times))*percent/100))]
}

func milliseconds(duration time.Duration) float64 { return float64(duration.Microseconds()) / 1000 }

func main() {
	flag.Parse()
	modes := map[string]func() map[string]float64{"figures": figures, "fill": fill, "soak": soak, "jobs": jobs, "watches": manyWatches}
	mode, known := modes[flag.Arg(0)]
	if !known {
		must(fmt.Errorf("which of figures, fill, soak, jobs, watches?"))
	}
	line, _ := json.Marshal(mode())
	fmt.Println(string(line))
}
