//go:build e2e

package test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/moby/moby/client"

	"carma/runner/api"
)

// peerImage makes the image of the services that the test's suites have.
func peerImage(t *testing.T) string {
	t.Helper()
	program, err := peerProgram()
	if err != nil {
		t.Fatal(err)
	}
	ref := fmt.Sprintf("carma-e2e-peer:%s-%d", strings.ToLower(t.Name()), os.Getpid())
	if err := engine.importProgram(t.Context(), program, "/peer", ref); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, _ = engine.cli.ImageRemove(context.Background(), ref, client.ImageRemoveOptions{Force: true})
	})
	return ref
}

var peerProgram = sync.OnceValues(func() (string, error) { return build("peer", "carma/test/peer") })

// helped is a suite of one user on one daemon.
type helped struct {
	*server
	name, file string
	who        *syscall.Credential
}

func (h *helped) as(args ...string) result {
	h.t.Helper()
	return h.begin(h.who, args...).wait()
}

// made returns the containers, networks and volumes of the daemon's helpers.
func (h *helped) made() (containers, networks, volumes int) {
	h.t.Helper()
	of := client.Filters{}
	of.Add("label", "carma.helpers="+h.instance())
	c, err := engine.cli.ContainerList(context.Background(), client.ContainerListOptions{All: true, Filters: of})
	if err != nil {
		h.t.Fatal(err)
	}
	n, err := engine.cli.NetworkList(context.Background(), client.NetworkListOptions{Filters: of})
	if err != nil {
		h.t.Fatal(err)
	}
	v, err := engine.cli.VolumeList(context.Background(), client.VolumeListOptions{Filters: of})
	if err != nil {
		h.t.Fatal(err)
	}
	return len(c.Items), len(n.Items), len(v.Items)
}

// clear removes the leftovers of a failed test.
func (h *helped) clear() {
	of := client.Filters{}
	of.Add("label", "carma.helpers="+h.instance())
	ctx := context.Background()
	if c, err := engine.cli.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: of}); err == nil {
		for i := range c.Items {
			_, _ = engine.cli.ContainerRemove(ctx, c.Items[i].ID, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
		}
	}
	if n, err := engine.cli.NetworkList(ctx, client.NetworkListOptions{Filters: of}); err == nil {
		for i := range n.Items {
			_, _ = engine.cli.NetworkRemove(ctx, n.Items[i].ID, client.NetworkRemoveOptions{})
		}
	}
	if v, err := engine.cli.VolumeList(ctx, client.VolumeListOptions{Filters: of}); err == nil {
		for i := range v.Items {
			_, _ = engine.cli.VolumeRemove(ctx, v.Items[i].Name, client.VolumeRemoveOptions{Force: true})
		}
	}
}

// helper waits until a helper satisfies is.
func (h *helped) helper(name, what string, is func(*api.HelperState) bool) (found api.HelperState) {
	h.t.Helper()
	for until := time.Now().Add(patience); time.Now().Before(until); time.Sleep(50 * time.Millisecond) {
		var s api.SuiteState
		r := h.as("suite", "ps", "--json", "-p", h.name)
		if r.code == 0 && json.Unmarshal([]byte(r.out), &s) == nil {
			for i := range s.Helpers {
				if found = s.Helpers[i]; found.Helper == name && is(&found) {
					return found
				}
			}
		}
	}
	h.t.Fatalf("helper %s is not %s: %+v", name, what, found)
	return found
}

// asked returns the answer of a helper's port, or empty if there is none.
func asked(h *api.HelperState, path string) string {
	c := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	if len(h.Ports) == 0 {
		return ""
	}
	res, err := c.Get(fmt.Sprintf("http://127.0.0.1:%d%s", h.Ports[0].Host, path))
	if err != nil {
		return ""
	}
	defer res.Body.Close()
	body, _ := io.ReadAll(res.Body)
	return strings.TrimSpace(string(body))
}

func healthy(s *api.HelperState) bool { return s.Health == "healthy" }

// TestSuiteHelpers: a database, a tracking server that waits for its health, and three
// trainings that find both by name, as an ordinary user. A helper that crashes is
// restarted with its volume; the daemon is killed in the middle; another user cannot
// change the suite; down removes all.
func TestSuiteHelpers(t *testing.T) {
	t.Parallel()
	needRoot(t)
	s := newServer(t)
	s.flags = append(s.flags, "--allowed-mounts", s.root)
	s.borrowCommand()
	h := &helped{server: s, name: "helped-" + filepath.Base(s.root), who: &syscall.Credential{Uid: 3000, Gid: 3000}}
	h.name = strings.ToLower(h.name)
	t.Cleanup(h.clear)
	s.start()
	if err := os.Mkdir(filepath.Join(s.root, "shared"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(filepath.Join(s.root, "shared"), 3000, 3000); err != nil {
		t.Fatal(err)
	}
	s.write("key.txt", "a secret\n")
	h.file = s.write("compose.yaml", fmt.Sprintf(`name: %s
services:
  db:
    image: %[2]q
    command: serve :5432 /data/count
    volumes: [counts:/data]
    restart: always
    secrets: [key]
    ports: ["5432"]
    healthcheck: {test: [CMD, /peer, check, "http://localhost:5432/"], interval: 1s}
  tracker:
    image: %[2]q
    command: serve :5000
    ports: ["5000"]
    depends_on: {db: {condition: service_healthy}}
    healthcheck: {test: [CMD, /peer, check, "http://db:5432/"], interval: 1s}
  mine:
    image: %[2]q
    command: serve :7000 /data/count
    restart: on-failure
    ports: ["7000"]
    volumes: ["./shared:/data"]
  train:
    image: %[2]q
    command: get http://db:5432/count http://tracker:5000/user
    gpus: [{count: 1}]
    scale: 3
    depends_on: {tracker: {condition: service_healthy}, mine: {condition: service_started}}
    x-carma: {mem: 1G}
volumes: {counts: {}}
secrets: {key: {file: key.txt}}
`, h.name, peerImage(t)))

	up := h.begin(h.who, "suite", "up", "--keep", h.file)
	up.err.await(t, "waiting until helper db is healthy", 0, up.done)
	s.kill()
	s.start()
	if r := up.wait(); r.code != 0 || strings.Count(r.out, "| count ") != 3 || strings.Count(r.out, "| 0 0") != 3 {
		t.Fatal(r)
	}
	if c, n, v := h.made(); c != 3 || n != 1 || v != 1 {
		t.Errorf("%d containers, %d networks, %d volumes", c, n, v)
	}

	db := h.helper("db", "healthy", healthy)
	if got := asked(&db, "/file?name=/run/secrets/key"); got != "a secret" {
		t.Errorf("the secret is %q", got)
	}
	status := asked(&db, "/status")
	if !strings.Contains(status, "CapEff:\t00000000000404fb") || !strings.Contains(status, "NoNewPrivs:\t1") {
		t.Errorf("the database's rights: %s", status)
	}
	mine := h.helper("mine", "running", func(s *api.HelperState) bool { return s.State == "running" })
	if got := asked(&mine, "/user"); got != "3000 3000" {
		t.Errorf("a helper with a folder of the host runs as %q", got)
	}
	if status := asked(&mine, "/status"); !strings.Contains(status, "CapBnd:\t0000000000000000") {
		t.Errorf("its rights: %s", status)
	}

	asked(&db, "/crash")
	db = h.helper("db", "healthy again", func(s *api.HelperState) bool { return s.Restarts == 1 && healthy(s) })
	if got := asked(&db, "/count"); got != "count 4" {
		t.Errorf("after a crash: %q", got)
	}
	asked(&mine, "/count")
	asked(&mine, "/crash")
	mine = h.helper("mine", "up again", func(s *api.HelperState) bool {
		return s.Restarts == 1 && s.State == "running" && asked(s, "/user") != ""
	})
	if got := asked(&mine, "/count"); got != "count 2" {
		t.Errorf("with a folder of the host, after a crash: %q", got)
	}

	s.kill()
	s.start()
	before := db.Started
	if db = h.helper("db", "there after a kill", healthy); db.Started != before || db.Restarts != 1 {
		t.Errorf("the database was started again: %v, then %v", before, db.Started)
	}
	other := func(args ...string) result {
		t.Helper()
		return h.begin(&syscall.Credential{Uid: 3001, Gid: 3001}, append(args, "-p", h.name)...).wait()
	}
	if r := other("suite", "down", "-v"); r.code == 0 {
		t.Error(r)
	}
	if r := other("suite", "logs"); strings.Contains(r.out, "listening") {
		t.Error(r)
	}
	if r := h.as("suite", "logs", "-n", "1", "-p", h.name, "db"); r.code != 0 || r.out != h.name+"-db-1 | listening at :5432\n" {
		t.Error(r)
	}
	if c, n, v := h.made(); c != 3 || n != 1 || v != 1 {
		t.Errorf("after another user: %d containers, %d networks, %d volumes", c, n, v)
	}
	if r := h.as("suite", "down", "-v", "-p", h.name); r.code != 0 || strings.Count(r.out, "\n") != 3 {
		t.Error(r)
	}
	if c, n, v := h.made(); c+n+v != 0 {
		t.Errorf("left: %d containers, %d networks, %d volumes", c, n, v)
	}
	if r := h.as("suite", "logs", "-n", "1", "-p", h.name, "db"); r.code != 0 || r.out != h.name+"-db-1 | listening at :5432\n" {
		t.Errorf("after its end: %v", r)
	}
	if r := other("suite", "logs"); strings.Contains(r.out, "listening") {
		t.Errorf("after its end, another user: %v", r)
	}
	s.checkContainers()
}

// TestSuiteEndsHelpers: without --keep the helpers end with the last task, also in
// the background; the volume stays until down -v. A suite that fails to start leaves
// nothing.
func TestSuiteEndsHelpers(t *testing.T) {
	t.Parallel()
	s := newUsersServer(t)
	s.start()
	h := &helped{server: s, name: strings.ToLower("ends-" + filepath.Base(s.root))}
	t.Cleanup(h.clear)
	ref := peerImage(t)
	h.file = s.write("compose.yaml", fmt.Sprintf(`services:
  db: {image: %[1]q, command: "serve :5432 /data/count", volumes: ["counts:/data"], stop_grace_period: 1s, hostname: base, ports: ["5432"]}
  beside: {image: %[1]q, command: "get http://localhost:5432/user", network_mode: "service:db", restart: on-failure}
  train: {image: %[1]q, command: "get http://db:5432/count", gpus: [{count: 1}], x-carma: {mem: 1G}, depends_on: [db]}
volumes: {counts: {}}
`, ref))
	if r := h.as("suite", "up", "-d", "-p", h.name, h.file); r.code != 0 {
		t.Fatal(r)
	}
	s.succeeded(h.name + "-train")
	if r := h.as("suite", "logs", "-p", h.name, "beside"); r.code != 0 || !strings.Contains(r.out, "-beside-1 | 0 0\n") {
		t.Errorf("in the database's network: %v", r)
	}
	for until := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		c, n, v := h.made()
		if c == 0 && n == 0 && v == 1 {
			break
		}
		if time.Now().After(until) {
			t.Fatalf("%d containers, %d networks, %d volumes", c, n, v)
		}
	}
	if r := h.as("suite", "down", "-v", "-p", h.name); r.code != 0 || !strings.Contains(r.err, "removed the volume counts") {
		t.Error(r)
	}
	file := s.write("fails.yaml", fmt.Sprintf(`services:
  once: {image: %[1]q, command: "get http://nowhere.invalid/"}
  train: {image: %[1]q, command: "get http://once/", gpus: all, depends_on: {once: {condition: service_completed_successfully}}}
`, ref))
	if r := h.as("suite", "up", "-p", h.name+"-fails", file); r.code != 1 || !strings.Contains(r.err, "helper once has ended with exit code 1") || !strings.Contains(r.err, "-once-1: peer: ") {
		t.Error(r)
	}
	if c, n, v := h.made(); c+n+v != 0 {
		t.Errorf("left: %d containers, %d networks, %d volumes", c, n, v)
	}
}
