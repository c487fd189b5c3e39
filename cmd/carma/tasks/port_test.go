package tasks

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"carma/runner/api"
)

// TestUntilOpen checks that carma port waits for the ports of a running task, which a daemon
// that was just restarted does not know yet, and does not wait for a queued task.
func TestUntilOpen(t *testing.T) {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		text := `{"phase":"running","submit":{"publish":["8888"]}}`
		if asked++; asked > 1 {
			text = `{"phase":"running","submit":{"publish":["8888"]},"ports":[{"port":"8888/tcp","address":"127.0.0.1:40000"}]}`
		}
		_, _ = w.Write([]byte(text))
	}))
	defer server.Close()
	client := api.NewRemote(server.URL, server.Client())
	task := api.Task{Phase: "running"}
	task.Submit.Ports = []string{"8888"}
	got, err := untilOpen(t.Context(), client, "1", task)
	if err != nil || len(got.Ports) != 1 || got.Ports[0].Address != "127.0.0.1:40000" {
		t.Errorf("%+v, %v", got.Ports, err)
	}
	task.Phase, asked = "queued", 0
	if _, err := untilOpen(t.Context(), client, "1", task); err != nil || asked != 0 {
		t.Errorf("asked %d times for a queued task, %v", asked, err)
	}
}
