//go:build kubernetes

package test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// TestUnheardPods: the cluster's controllers receive no pod events for a while. This happens
// after an outage of the apiserver, when each of their watches recovers at a different time.
// Tasks that start and end in the meantime must leave no claim, whose memory would stay
// allocated forever to a pod that is gone.
func TestUnheardPods(t *testing.T) {
	c, _, d := bench(t)
	deafen, asked := c.controllersBehind()
	deafen()
	var names []string
	for i := range 5 {
		task := block(fmt.Sprint("unheard-", i), fmt.Sprint("unheard-", i))
		task.Command = []string{"exit:0"}
		d.submit(task)
		names = append(names, task.Name)
	}
	for _, name := range names {
		d.ends(name, 1)
	}
	c.empty("lab")
	if asked.Load() == 0 {
		t.Error("the controllers did not ask for pods meanwhile")
	}
}

// controllersBehind restarts the controllers behind a proxy. After a call of deafen they
// receive no lists and watches of pods, but still answers about a single pod. asked returns the
// number of their requests.
func (c *cluster) controllersBehind() (deafen func(), asked *atomic.Int64) {
	c.t.Helper()
	to, err := url.Parse(c.url)
	if err != nil {
		c.t.Fatal(err)
	}
	streams, cut := context.WithCancel(context.Background())
	c.t.Cleanup(cut)
	through := &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(to) },
		Transport: c.http.Transport, FlushInterval: -1,
	}
	asked = &atomic.Int64{}
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/pods") {
			if streams.Err() != nil {
				asked.Add(1)
				http.Error(w, "deaf", http.StatusServiceUnavailable)
				return
			}
			ctx, end := context.WithCancel(r.Context())
			defer end()
			defer context.AfterFunc(streams, end)()
			r = r.WithContext(ctx)
		}
		through.ServeHTTP(w, r)
	}))
	c.t.Cleanup(func() { proxy.CloseClientConnections(); proxy.Close() })
	config, err := os.ReadFile(c.kubeconfig)
	if err != nil {
		c.t.Fatal(err)
	}
	file := filepath.Join(c.t.TempDir(), "controllers.kubeconfig")
	if err := os.WriteFile(file, []byte(strings.Replace(string(config), c.url, proxy.URL, 1)), 0o600); err != nil {
		c.t.Fatal(err)
	}
	c.t.Setenv("KUBERNETES_CONTROLLERS_CONFIG", file)
	c.kill("controllers")
	c.up()
	return cut, asked
}
