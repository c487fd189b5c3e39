package docker

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"carma/containers"
)

// stub answers in place of an engine. It can give answers that a real one rarely
// gives.
func stub(t *testing.T, handle http.HandlerFunc) *Driver {
	t.Helper()
	dir, err := os.MkdirTemp("", "carma")
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/_ping") {
			w.Header().Set("Api-Version", "1.41")
			return
		}
		handle(w, r)
	}))
	_ = srv.Listener.Close()
	srv.Listener = l
	srv.Start()
	d, err := New(Options{Host: "unix://" + l.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = d.Close()
		srv.Close()
		_ = os.RemoveAll(dir)
	})
	return d
}

func refuse(w http.ResponseWriter, code int, msg string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]string{"message": msg})
}

func inspected(w http.ResponseWriter, status string) {
	_, _ = fmt.Fprintf(w, `{"Id":"c1","State":{"Status":%q}}`, status)
}

var errOther = errors.New("none of the contract's")

func TestErrors(t *testing.T) {
	const oci = "failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: "
	tests := []struct {
		code int
		msg  string
		want error
		text string // part of its message
	}{
		{404, "No such container: c1", containers.ErrNotFound, "not found: No such container: c1"},
		{409, "container is marked for removal and cannot be started", containers.ErrNotFound, ""},
		{400, oci + `exec: "python": executable file not found in $PATH: unknown`, containers.ErrInvalid,
			`start container c1: invalid container: exec: "python": executable file not found in $PATH`},
		{500, oci + `exec: "/data": permission denied: unknown`, containers.ErrInvalid, ""},
		{500, "unable to find user eve: no matching entries in passwd file", containers.ErrInvalid, ""},
		{500, "uids and gids must be in range 0-2147483647", containers.ErrInvalid, ""},
		{400, oci + `error during container init: error mounting "/a" to rootfs at "/b": not a directory: unknown: Are you trying to mount a directory onto a file (or vice-versa)?`,
			containers.ErrInvalid, `error mounting "/a" to rootfs at "/b": not a directory: Are you trying`},
		{500, "lstat /var/lib/docker/overlay2/" + strings.Repeat("ab", 32) + "/merged/tool/x: not a directory",
			containers.ErrInvalid, "lstat /tool/x: not a directory"},
		{500, `could not select device driver "" with capabilities: [[gpu]]`, errOther, ""},
		{400, "Unknown runtime specified nvidia", errOther, ""},
		{400, oci + "error running hook #0: nvidia-container-cli: initialization error: load library failed: libnvidia-ml.so.1: no such file or directory", errOther, ""},
		{500, "write /var/lib/docker/x: no space left on device", errOther, ""},
		{500, "something else", errOther, "start container c1: something else"},
		{503, "busy", containers.ErrUnavailable, ""},
		{500, `connection error: desc = "transport: dial unix /run/containerd/containerd.sock"`, containers.ErrUnavailable, ""},
		{400, "client version 1.41 is too old. Minimum supported API version is 1.44", containers.ErrUnavailable, ""},
	}
	for _, tc := range tests {
		d := stub(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				inspected(w, "created")
				return
			}
			refuse(w, tc.code, tc.msg)
		})
		err := d.Start(t.Context(), "c1")
		if err == nil {
			t.Errorf("%s: no error", tc.msg)
			continue
		}
		for _, kind := range []error{containers.ErrNotFound, containers.ErrInvalid, containers.ErrUnavailable} {
			if got, want := errors.Is(err, kind), errors.Is(tc.want, kind); got != want {
				t.Errorf("%s: wraps %q: %v, want %v", tc.msg, kind, got, want)
			}
		}
		if !strings.Contains(err.Error(), tc.text) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: shown as %q, want %q", tc.msg, err, tc.text)
		}
	}
}

func TestEngineDiesInAnswer(t *testing.T) {
	d := stub(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/json") {
			inspected(w, "running")
			return
		}
		w.WriteHeader(http.StatusOK)
		half := []byte{1, 0, 0, 0, 0, 0, 0, 99, 'x'}
		if strings.HasSuffix(r.URL.Path, "/wait") {
			half = []byte(`{"StatusCode`)
		}
		_, _ = w.Write(half)
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	})
	if _, err := d.Wait(t.Context(), "c1"); !errors.Is(err, containers.ErrUnavailable) {
		t.Errorf("Wait: %v, want ErrUnavailable", err)
	}
	sink := func(time.Time, containers.Stream, []byte, bool) { t.Error("half an entry was sent") }
	if err := d.Logs(t.Context(), "c1", time.Time{}, true, sink); !errors.Is(err, containers.ErrUnavailable) {
		t.Errorf("Logs: %v, want ErrUnavailable", err)
	}
}

// TestNegotiatesAgain: an engine is replaced while a driver uses it.
func TestNegotiatesAgain(t *testing.T) {
	var refusals atomic.Int32
	d := stub(t, func(w http.ResponseWriter, _ *http.Request) {
		if refusals.Add(1) == 1 {
			refuse(w, 400, "client version 1.41 is too old. Minimum supported API version is 1.44")
			return
		}
		_, _ = w.Write([]byte("[]"))
	})
	old := d.conn.Load()
	if _, err := d.List(t.Context(), nil); !errors.Is(err, containers.ErrUnavailable) {
		t.Errorf("List: %v, want ErrUnavailable", err)
	}
	if d.conn.Load() == old {
		t.Error("the refused version is kept")
	}
	if _, err := d.List(t.Context(), nil); err != nil {
		t.Errorf("List: %v", err)
	}
}

// TestStartOnce lets a second Start read the container's state while a first Start is in
// progress. The second must not find the state "created" and start the container again after
// its end.
func TestStartOnce(t *testing.T) {
	var starts, looks atomic.Int32
	met := make(chan struct{})
	d := stub(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			starts.Add(1)
			w.WriteHeader(http.StatusNoContent)
			return
		}
		status := "created"
		if starts.Load() > 0 {
			status = "exited"
		}
		switch looks.Add(1) {
		case 1:
			select {
			case <-met:
			case <-time.After(100 * time.Millisecond): // the other Start waits, as it should
			}
		case 2:
			close(met)
		}
		inspected(w, status)
	})
	done := make(chan error, 2)
	for range 2 {
		go func() { done <- d.Start(t.Context(), "c1") }()
	}
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if n := starts.Load(); n != 1 {
		t.Errorf("%d starts, want 1", n)
	}
}
