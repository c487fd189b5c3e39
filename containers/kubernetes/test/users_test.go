//go:build kubernetes

package test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"

	"carma/runner/api"
)

// audience is the audience of the test users' tokens. The cluster itself does not accept
// them.
const audience = "carma"

// user is a service account with its own namespace. The user runs carma on their own machine,
// over TLS with the account's token.
type user struct {
	t    *testing.T
	name string // name of the account and of its namespace
	env  []string
}

// newUser makes a namespace with these labels, a service account that may work only there, and
// the kubeconfig of a machine that uses the account.
func (c *cluster) newUser(name, audience string) *user {
	c.t.Helper()
	c.namespace(name)
	at := "/api/v1/namespaces/" + name
	c.must(http.MethodPost, at+"/serviceaccounts", `{"metadata":{"name":"trainer"}}`)
	rbac := "/apis/rbac.authorization.k8s.io/v1/namespaces/" + name
	c.must(http.MethodPost, rbac+"/roles", `{"metadata":{"name":"trainer"},"rules":[
		{"apiGroups":[""],"resources":["pods"],"verbs":["create","get","delete"]},{"apiGroups":[""],"resources":["pods/log"],"verbs":["get"]},
		{"apiGroups":[""],"resources":["pods/exec","pods/attach"],"verbs":["create"]},{"apiGroups":["resource.k8s.io"],"resources":["resourceclaims"],"verbs":["create"]}]}`)
	c.must(http.MethodPost, rbac+"/rolebindings", fmt.Sprintf(`{"metadata":{"name":"trainer"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"trainer"},
		"subjects":[{"kind":"ServiceAccount","name":"trainer","namespace":%q}]}`, name))
	u := &user{t: c.t, name: name}
	home := c.t.TempDir()
	u.env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "KUBECONFIG=" + c.tokenFor(name, audience, home)}
	return u
}

// tokenFor makes a token of the service account trainer, and a kubeconfig with the token.
func (c *cluster) tokenFor(namespace, audience, dir string) (kubeconfig string) {
	c.t.Helper()
	request := `{"spec":{"expirationSeconds":3600}}`
	if audience != "" {
		request = fmt.Sprintf(`{"spec":{"expirationSeconds":3600,"audiences":[%q]}}`, audience)
	}
	var told authenticationv1.TokenRequest
	if err := json.Unmarshal(c.must(http.MethodPost, "/api/v1/namespaces/"+namespace+"/serviceaccounts/trainer/token", request), &told); err != nil {
		c.t.Fatal(err)
	}
	kubeconfig = filepath.Join(dir, "kubeconfig-"+audience)
	text := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: k, cluster: {server: %q}}],
		users: [{name: u, user: {token: %q}}], contexts: [{name: c, context: {cluster: k, user: u, namespace: %s}}]}`, c.url, told.Status.Token, namespace)
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		c.t.Fatal(err)
	}
	return kubeconfig
}

// command returns a carma command that the user starts.
func (u *user) command(args ...string) (*exec.Cmd, *output) {
	cmd, out := exec.CommandContext(u.t.Context(), carma, args...), &output{}
	cmd.Env, cmd.Stdout, cmd.Stderr = u.env, out, out
	return cmd, out
}

// says runs carma until it ends.
func (u *user) says(args ...string) (text string, code int) {
	u.t.Helper()
	cmd, out := u.command(args...)
	return u.code(cmd.Run(), out, args)
}

func (u *user) code(err error, out *output, args []string) (string, int) {
	u.t.Helper()
	if ended, ok := errors.AsType[*exec.ExitError](err); ok {
		return out.String(), ended.ExitCode()
	} else if err != nil {
		u.t.Fatalf("%s: carma %v: %v", u.name, args, err)
	}
	return out.String(), 0
}

// wants runs carma, which must end with this code and print these words.
func (u *user) wants(code int, words string, args ...string) string {
	u.t.Helper()
	text, got := u.says(args...)
	if got != code || !strings.Contains(text, words) {
		u.t.Errorf("%s: carma %v ended with %d and said %q; want %d and %q", u.name, args, got, text, code, words)
	}
	return text
}

// refused runs carma, which must fail with a message of one line that contains these words.
func (u *user) refused(words string, args ...string) {
	u.t.Helper()
	text, code := u.says(args...)
	if code == 0 || !strings.Contains(text, words) || strings.Count(text, "\n") > 2 { // the message, and a hint
		u.t.Errorf("%s: carma %v ended with %d and said %q; want one line with %q", u.name, args, code, text, words)
	}
}

// begin starts carma, and waits until it has printed some words.
func (u *user) begin(words string, args ...string) (*exec.Cmd, *output) {
	u.t.Helper()
	cmd, out := u.command(args...)
	if err := cmd.Start(); err != nil {
		u.t.Fatal(err)
	}
	(&cluster{t: u.t}).until(fmt.Sprintf("%s: carma %v says %q", u.name, args, words), func() bool { return strings.Contains(out.String(), words) })
	return cmd, out
}

// podOfTask returns the pod of a user's task from the cluster.
func (c *cluster) podOfTask(namespace string, task api.Task) string {
	c.t.Helper()
	for _, pod := range c.tasks(namespace) {
		if pod.Labels["carma.task"] == strconv.FormatInt(task.ID, 10) {
			return string(pod.UID)
		}
	}
	return ""
}

// near returns an address of this machine that the cluster's ports listen on, and that no part
// of the cluster has.
func (c *cluster) near() string {
	c.t.Helper()
	at, err := url.Parse(c.url)
	if err != nil {
		c.t.Fatal(err)
	}
	port, err := strconv.Atoi(at.Port())
	if err != nil {
		c.t.Fatal(err)
	}
	return net.JoinHostPort(at.Hostname(), strconv.Itoa(port+9))
}

// TestUsers: on a real cluster, two users come over TLS by tokens of their own, one by
// carma context and one by CARMA_HOST, and run tasks in their namespaces. Neither sees or
// changes the other's. A refusal by the namespace is reported in one line; a task beyond
// its quota waits; and one at Pod Security's level restricted runs tasks of users that
// are not root.
func TestUsers(t *testing.T) {
	c := newCluster(t)
	c.bringTool()
	c.namespace("lab")
	ann, bob := c.newUser("ann", audience), c.newUser("bob", audience)
	c.must(http.MethodPatch, "/api/v1/namespaces/ann", `{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"restricted"}}}`)
	agent := c.newAgent("lab", "dgx-station-a100")
	d := c.newDaemon("lab", "--kubernetes-namespaces", "ann,bob", "--listen", c.near(), "--token-audience", audience)
	if !agent.start(offers) || !d.start(ready) {
		t.Fatal("agent and daemon do not start")
	}
	d.healthy()
	at := "https://" + c.near()
	ca := filepath.Join(d.root, "d/tls/ca.crt")
	ann.wants(0, "", "context", "add", "lab", "--host", at, "--ca", ca)
	ann.wants(2, "", "ps") // it is not chosen yet, and no daemon of this machine answers
	ann.wants(0, "", "context", "use", "lab")
	ann.wants(0, "carma context use", "context", "list")
	bob.env = append(bob.env, "CARMA_HOST="+at)
	bob.refused("certificate", "ps")
	bob.env = append(bob.env, "CARMA_CA="+ca)
	bob.wants(0, "", "ps")

	t.Run("tokens", func(t *testing.T) { c.foreignTokens(t, bob) })
	t.Run("refused", func(t *testing.T) { c.refusedThere(t, d, ann, bob) })
	t.Run("full", func(t *testing.T) { c.fullThere(t, d, ann, bob) })
	tasks := map[*user]api.Task{}
	for u, other := range map[*user]string{ann: "secret-ann", bob: "secret-bob"} {
		u.wants(0, "", "run", "-d", "--name", other, "--mem", "512M", "--user", "1000:1000", "--pull", "never", tool, "out:"+other, "capabilities", "out:up", "block:0")
		tasks[u] = d.runs(other)
	}
	t.Run("own", func(t *testing.T) {
		for _, u := range []*user{ann, bob} {
			c.ownTasks(t, d, u)
		}
	})
	t.Run("other's", func(t *testing.T) {
		c.othersTask(t, d, ann, bob, tasks[bob])
		c.othersTask(t, d, bob, ann, tasks[ann])
	})
	for _, u := range []*user{ann, bob} {
		word := "secret-" + u.name
		u.wants(0, "", "stop", word)
		if task := d.sees(word, "its end", func(t api.Task) bool { return t.Finished() }); len(task.Attempts) != 1 {
			t.Errorf("%s: %+v", word, task.Attempts)
		}
		u.wants(0, "", "rm", word)
		c.empty(u.name)
	}
}

// foreignTokens: one that is meant for the cluster, and one that the cluster does not
// know, are refused.
func (c *cluster) foreignTokens(t *testing.T, bob *user) {
	other := *bob
	other.t = t
	other.env = append(slices.Clone(bob.env), "KUBECONFIG="+c.tokenFor("bob", "", t.TempDir()))
	other.refused("the cluster does not take your token", "ps")
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text, err := os.ReadFile(c.tokenFor("bob", audience, t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, bytes.Replace(text, []byte(`token: "`), []byte(`token: "x`), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	other.env = append(slices.Clone(bob.env), "KUBECONFIG="+file)
	other.refused("the cluster does not take your token", "ps")
}

// ownTasks: everything works on a task of one's own, whose pod runs.
func (c *cluster) ownTasks(t *testing.T, d *daemon, u *user) {
	word := "secret-" + u.name
	u.wants(0, word, "ps")
	u.wants(0, "", "why", word)
	u.wants(0, `"namespace": "`+u.name+`"`, "inspect", word)
	u.wants(0, "0000000000000000", "logs", word) // no capability
	u.wants(4, "1000:1000", "exec", word, "/tool", "user", "exit:4")
	u.wants(3, "attached-to", "run", "--mem", "512M", "--user", "1000:1000", "--pull", "never", tool, "out:attached-to", "exit:3")

	// The output comes while it runs, and ends with the task.
	u.wants(0, "", "run", "-d", "--name", "followed", "--mem", "512M", "--user", "1000:1000", "--pull", "never", tool, "out:followed-"+u.name, "block:5")
	logs, out := u.begin("followed-"+u.name, "logs", "-f", "followed")
	u.wants(0, "", "stop", "followed")
	if text, code := u.code(logs.Wait(), out, logs.Args); code != 0 {
		t.Errorf("logs -f ended with %d: %q", code, text)
	}
	u.wants(0, "followed", "history")
	u.wants(0, "", "rm", "followed")

	// Ctrl-C ends an attached task.
	run, said := u.begin("here-"+u.name, "run", "--name", "interrupted", "--mem", "512M", "--user", "1000:1000", "--pull", "never", tool, "out:here-"+u.name, "block:7")
	if err := run.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if text, code := u.code(run.Wait(), said, run.Args); code != 7 || !strings.Contains(text, "stopping") {
		t.Errorf("Ctrl-C: it ended with %d and said %q", code, text)
	}
	if task := d.sees("interrupted", "its end", func(t api.Task) bool { return t.Finished() }); task.Phase != "cancelled" {
		t.Errorf("after Ctrl-C it has %s", task.Phase)
	}
	u.wants(0, "", "rm", "interrupted")
}

// othersTask: a user's requests about somebody else's task have no effect, and do not
// reveal that the task exists.
func (c *cluster) othersTask(t *testing.T, d *daemon, u, owner *user, task api.Task) {
	before, pod := d.runs(task.Name), c.podOfTask(owner.name, task)
	number, missing := strconv.FormatInt(task.ID, 10), "987654"
	for _, args := range [][]string{
		{"why", "REF"}, {"inspect", "REF"}, {"logs", "REF"}, {"logs", "-f", "REF"}, {"exec", "REF", "/tool", "exit:0"}, {"attach", "REF"},
		{"stop", "REF"}, {"rm", "REF"}, {"update", "--priority", "low", "REF"}, {"hold", "REF"}, {"release", "REF"}, {"requeue", "REF"},
		{"move", "--yes", "REF", "0"}, {"suspend", "REF"}, {"resume", "REF"}, {"history", "REF"}, {"wait", "REF"}, {"rerun", "REF"}, {"port", "REF"},
		{"top", "REF"}, {"run", "-d", "--mem", "512M", "--after", "REF", tool, "exit:0"},
	} {
		refs := map[string]string{}
		for _, ref := range []string{task.Name, number, missing} {
			filled := strings.Split(strings.ReplaceAll(strings.Join(args, "\x00"), "REF", ref), "\x00")
			text, code := u.says(filled...)
			if text = strings.ReplaceAll(text, ref, "REF"); code == 0 || strings.Contains(text, "secret-") {
				t.Errorf("%s: carma %v ended with %d and said %q", u.name, filled, code, text)
			}
			refs[ref] = text
		}
		if refs[number] != refs[missing] {
			t.Errorf("%s: carma %v tells that there is a task: %q, and of one that is not there %q", u.name, args, refs[number], refs[missing])
		}
	}
	for _, args := range [][]string{{"ps", "-a"}, {"ps", "--json"}, {"history"}, {"gpus"}, {"gpus", "--json"}, {"quota"}, {"report"}, {"info"}} {
		if text, code := u.says(args...); code != 0 || strings.Contains(text, task.Name) {
			t.Errorf("%s: carma %v ended with %d and said %q", u.name, args, code, text)
		}
	}
	u.refused("you may not create pods in namespace "+owner.name, "run", "-d", "--namespace", owner.name, "--mem", "512M", tool, "exit:0")
	u.refused("namespace lab", "run", "-d", "--namespace", "lab", "--mem", "512M", tool, "exit:0")
	for _, args := range [][]string{{"drain", "0"}, {"pause"}} {
		u.refused("admin", args...)
	}
	after := d.runs(task.Name)
	if len(after.Attempts) != 1 || after.Priority != before.Priority || c.podOfTask(owner.name, task) != pod || pod == "" {
		t.Errorf("%s: the task is %+v, it was %+v; its pod was %q", u.name, after, before, pod)
	}
}
