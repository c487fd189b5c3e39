//go:build kubernetes

package test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// patience is the time limit of each wait. It is long because the machine may be busy.
const patience = 3 * time.Minute

// cluster is a Kubernetes on this machine for one test. Requests are sent as its administrator.
type cluster struct {
	t          *testing.T
	state      string // folder of the cluster
	kubeconfig string
	url        string
	http       *http.Client
	kinds      map[string][]kind // kinds by group and version
}

// kind is a kind of objects in the apiserver's list.
type kind struct {
	Name, Kind string
	Namespaced bool
}

// clusters counts the started clusters; tests start them one after the other.
var clusters int

// newCluster starts a cluster, and stops it at the end of the test. It skips the test if the
// programs are not built. args are passed to up.sh.
func newCluster(t *testing.T, args ...string) *cluster {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("a node needs root")
	}
	cached := exec.Command("./build.sh", "--cached")
	if out, err := cached.CombinedOutput(); err != nil {
		if code, ok := errors.AsType[*exec.ExitError](err); ok && code.ExitCode() == 3 {
			t.Skip(strings.TrimSpace(string(out)))
		}
		t.Fatalf("%v: %s", err, out)
	}
	// The cluster is separate from a cluster that somebody uses, and from another test's cluster,
	// whose certificates clients in this process have cached. The path of a socket must be short.
	clusters++
	c := &cluster{t: t, state: fmt.Sprintf("%s-%d", cmp.Or(os.Getenv("KUBERNETES_STATE"), "/tmp/ck-tests"), clusters), kinds: map[string][]kind{}}
	t.Setenv("KUBERNETES_STATE", c.state)
	t.Setenv("KUBERNETES_PORT", cmp.Or(os.Getenv("KUBERNETES_PORT"), "17543"))
	c.script("down.sh")
	t.Cleanup(func() { c.script("down.sh") })
	c.kubeconfig = c.script("up.sh", args...)
	config, err := clientcmd.BuildConfigFromFlags("", c.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.Timeout = 30 * time.Second
	if c.http, err = rest.HTTPClientFor(config); err != nil {
		t.Fatal(err)
	}
	c.url = config.Host
	return c
}

// script runs one of the scripts of this folder and returns what it prints.
func (c *cluster) script(name string, args ...string) string {
	c.t.Helper()
	cmd := exec.Command("./"+name, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		c.t.Fatalf("%s: %v", name, err)
	}
	return strings.TrimSpace(string(out))
}

// kill kills a part of the cluster like kill -9, and up starts the missing parts.
func (c *cluster) kill(part string) {
	c.t.Helper()
	file := filepath.Join(c.state, "run", part+".pid")
	text, err := os.ReadFile(file)
	if err != nil {
		c.t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		c.t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		c.t.Fatalf("kill %s: %v", part, err)
	}
	c.until(part+" has ended", func() bool { return syscall.Kill(pid, 0) != nil })
	if err := os.Remove(file); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) up() { c.t.Helper(); c.script("up.sh") }

// until waits until ok returns true.
func (c *cluster) until(what string, ok func() bool) {
	c.t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			c.t.Fatalf("not within %s: %s", patience, what)
		}
	}
}

// send sends a request; code is 0 if the apiserver does not answer.
func (c *cluster) send(method, path, kind string, body []byte) (code int, answer []byte) {
	c.t.Helper()
	r, err := http.NewRequestWithContext(c.t.Context(), method, c.url+path, bytes.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	r.Header.Set("Content-Type", kind)
	res, err := c.http.Do(r)
	if err != nil {
		return 0, []byte(err.Error())
	}
	defer func() { _ = res.Body.Close() }()
	answer, err = io.ReadAll(res.Body)
	if err != nil {
		return 0, []byte(err.Error())
	}
	return res.StatusCode, answer
}

// must sends a request that must succeed.
func (c *cluster) must(method, path string, body string) []byte {
	c.t.Helper()
	kind := "application/json"
	if method == http.MethodPatch {
		kind = "application/merge-patch+json"
	}
	code, answer := c.send(method, path, kind, []byte(body))
	if code < 200 || code > 299 {
		c.t.Fatalf("%s %s: %d %s", method, path, code, answer)
	}
	return answer
}

// get reads an object. It returns false if the object does not exist or the apiserver
// does not answer.
func get[T any](c *cluster, path string) (out T, ok bool) {
	c.t.Helper()
	code, answer := c.send(http.MethodGet, path, "application/json", nil)
	if code != http.StatusOK {
		return out, false
	}
	if err := json.Unmarshal(answer, &out); err != nil {
		c.t.Fatalf("%s: %v", path, err)
	}
	return out, true
}

// namespace makes a namespace, and waits until pods can be made there.
func (c *cluster) namespace(name string) {
	c.t.Helper()
	c.must(http.MethodPost, "/api/v1/namespaces", fmt.Sprintf(`{"metadata":{"name":%q}}`, name))
	c.until("namespace "+name+" has a service account", func() bool {
		_, ok := get[any](c, "/api/v1/namespaces/"+name+"/serviceaccounts/default")
		return ok
	})
}

// bring loads the images of an archive onto the node.
func (c *cluster) bring(archive string) { c.t.Helper(); c.script("import.sh", archive) }

// all returns the pids of the processes whose command line contains a word.
func all(word string) (pids []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err == nil && bytes.Contains(b, []byte("\x00"+word+"\x00")) {
			if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(f))); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}
