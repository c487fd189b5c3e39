package runner

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	tools "carma/cmd/carma/mcp"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// agentOf connects a client of the protocol with a daemon's tools.
func agentOf(g *rig) *mcp.ClientSession {
	g.t.Helper()
	here, there := mcp.NewInMemoryTransports()
	if _, err := tools.Server(g.api, "test").Connect(g.ctx(), there, nil); err != nil {
		g.t.Fatal(err)
	}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil).Connect(g.ctx(), here, nil)
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { session.Close() })
	return session
}

// callTool calls a tool and returns its answer, or the text of its error.
func callTool(t *testing.T, s *mcp.ClientSession, tool string, in map[string]any) (answer map[string]any, wrong string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), stepTimeout)
	defer cancel()
	r, err := s.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: in})
	if err != nil {
		return nil, err.Error()
	}
	if r.IsError {
		return nil, r.Content[0].(*mcp.TextContent).Text
	}
	body, err := json.Marshal(r.StructuredContent)
	if err == nil {
		err = json.Unmarshal(body, &answer)
	}
	if err != nil {
		t.Fatal(err)
	}
	return answer, ""
}

// TestAgent checks that an agent can submit, inspect, wait for and stop tasks, and that each
// wrong input gets an error of one line.
func TestAgent(t *testing.T) {
	g := newRig(t)
	g.script("long:1", untilStopped)
	g.script("short:1", printing(3, "one", "two"))
	s := agentOf(g)
	if a, wrong := callTool(t, s, "estimate", map[string]any{"image": "short:1", "settings": map[string]string{"mem": "2G"}}); wrong != "" || len(a["tasks"].([]any)) != 1 {
		t.Fatal(a, wrong)
	}
	if a, _ := callTool(t, s, "list", map[string]any{"all": true}); len(a["tasks"].([]any)) != 0 {
		t.Fatal("estimate has submitted something:", a)
	}
	if a, wrong := callTool(t, s, "submit", map[string]any{"image": "short:1", "name": "quick", "settings": map[string]string{"mem": "2G"}, "env": map[string]string{"A": "b"}}); wrong != "" || a["name"] != "quick" {
		t.Fatal(a, wrong)
	}
	if a, wrong := callTool(t, s, "wait", map[string]any{"task": "quick", "seconds": 15}); wrong != "" || a["ended"] != true || a["task"].(map[string]any)["exit_code"] != 3. {
		t.Fatal(a, wrong)
	}
	if a, wrong := callTool(t, s, "logs", map[string]any{"task": "quick", "tail": 1}); wrong != "" || a["output"] != "stderr: two\n" || a["phase"] != "failed" {
		t.Fatal(a, wrong)
	}
	if _, wrong := callTool(t, s, "submit", map[string]any{"image": "long:1", "name": "slow", "settings": map[string]string{"mem": "2G"}}); wrong != "" {
		t.Fatal(wrong)
	}
	g.running("slow")
	began := time.Now()
	if a, wrong := callTool(t, s, "wait", map[string]any{"task": "slow", "seconds": 0.3}); wrong != "" || a["ended"] != false || time.Since(began) > 5*time.Second {
		t.Fatal(a, wrong)
	}
	if a, wrong := callTool(t, s, "gpus", nil); wrong != "" || len(a["gpus"].([]any)) != 2 {
		t.Fatal(a, wrong)
	}
	if a, wrong := callTool(t, s, "why", map[string]any{"task": "slow"}); wrong != "" || !strings.Contains(a["summary"].(string), "does not wait") {
		t.Fatal(a, wrong)
	}
	if a, wrong := callTool(t, s, "show", map[string]any{"task": "slow"}); wrong != "" || a["submit"].(map[string]any)["mem"] != 2.*(1<<30) {
		t.Fatal(a, wrong)
	}
	if _, wrong := callTool(t, s, "stop", map[string]any{"task": "slow", "reason": "enough"}); wrong != "" {
		t.Fatal(wrong)
	}
	if task := g.finished("slow"); task.Phase != "cancelled" {
		t.Error(task.Phase)
	}
	for _, c := range []struct {
		tool string
		in   map[string]any
		want string
	}{
		{"show", map[string]any{"task": "nobody"}, "no task nobody"},
		{"show", map[string]any{"task": ""}, "task is empty"},
		{"show", nil, "task"},
		{"stop", map[string]any{"task": "nobody"}, "no task nobody"},
		{"list", map[string]any{"limit": 9999}, "nearest: 500"},
		{"list", map[string]any{"everything": true}, "everything"},
		{"wait", map[string]any{"task": "quick", "seconds": 9999}, "at most 600"},
		{"logs", map[string]any{"task": "quick", "tail": -1}, "tail is 1 to 2000"},
		{"submit", map[string]any{"command": []string{"true"}}, "nothing to run"},
		{"submit", map[string]any{"image": "short:1", "settings": map[string]string{"memory": "2G"}}, `no option "memory"`},
		{"submit", map[string]any{"image": "short:1", "settings": map[string]string{"mem": "plenty"}}, "settings: mem"},
		{"submit", map[string]any{"image": "short:1", "mounts": []string{"/data"}}, "source:target"},
		{"estimate", map[string]any{"image": "short:1", "settings": map[string]string{"mem": "900G"}}, "GPU"},
	} {
		if a, wrong := callTool(t, s, c.tool, c.in); !strings.Contains(wrong, c.want) || strings.Contains(strings.TrimSpace(wrong), "\n") {
			t.Errorf("%s %v: %v, %q; want %q", c.tool, c.in, a, wrong, c.want)
		}
	}
}

// TestAgentTools checks the annotations of the tools. Read-only tools are marked as such;
// estimate is not, because it may pull an image. Submit and stop are marked as destructive, so
// that clients ask the user first.
func TestAgentTools(t *testing.T) {
	list, err := agentOf(newRig(t)).ListTools(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var reads, changes, destroys []string
	for _, tool := range list.Tools {
		switch a := tool.Annotations; {
		case a.ReadOnlyHint:
			reads = append(reads, tool.Name)
		case a.DestructiveHint != nil && !*a.DestructiveHint:
			changes = append(changes, tool.Name)
		default:
			destroys = append(destroys, tool.Name)
		}
	}
	slices.Sort(reads)
	slices.Sort(destroys)
	if strings.Join(reads, " ") != "gpus list logs show wait why" || strings.Join(changes, " ") != "estimate" || strings.Join(destroys, " ") != "stop submit" {
		t.Error(reads, changes, destroys)
	}
}
