// kubelet serves one log file as a kubelet does: its own log reader (k8s.io/cri-client/pkg/logs, the package that the
// kubelet calls) behind HTTPS, flushed after each write as the kubelet's response is. A real kube-apiserver takes it for
// the kubelet of a node, so that `kubectl logs` goes the real way without a container runtime.
//
//	kubelet -log FILE -addr 127.0.0.1:PORT
//	kubelet -write FILE -bytes N        (makes a log in the CRI's format, N bytes of text in it, and ends)
package main

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"flag"
	"fmt"
	"log"
	"math/big"
	"net/http"
	"os"
	"strings"
	"time"

	"k8s.io/cri-client/pkg/logs"
)

type flushing struct{ http.ResponseWriter }

func (f flushing) Write(data []byte) (int, error) {
	n, err := f.ResponseWriter.Write(data)
	f.ResponseWriter.(http.Flusher).Flush()
	return n, err
}

func certificate() tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		log.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(24 * time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		log.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func write(path string, size int) {
	file, err := os.Create(path)
	if err != nil {
		log.Fatal(err)
	}
	out := bufio.NewWriterSize(file, 1<<20)
	for written, i := 0, 0; written < size; i++ {
		line := fmt.Sprintf("step %08d %s\n", i, strings.Repeat("x", 85))
		fmt.Fprintf(out, "2026-01-02T03:04:05.000000000Z stdout F %s", line)
		written += len(line)
	}
	if err := out.Flush(); err != nil {
		log.Fatal(err)
	}
}

func main() {
	path := flag.String("log", "", "the log to serve")
	addr := flag.String("addr", "", "where to listen")
	target := flag.String("write", "", "make this log instead of serving one")
	size := flag.Int("bytes", 0, "bytes of text in it")
	flag.Parse()
	if *target != "" {
		write(*target, *size)
		return
	}
	http.HandleFunc("/containerLogs/", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Transfer-Encoding", "chunked")
		out := flushing{w}
		if err := logs.ReadLogs(r.Context(), *path, "", &logs.LogOptions{}, nil, out, out); err != nil {
			log.Print(err)
		}
	})
	server := &http.Server{Addr: *addr, TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate()}}}
	log.Fatal(server.ListenAndServeTLS("", ""))
}
