//go:build containerd

package containerd

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"carma/containers"
)

// standIn is a CNI plugin that records its requests.
const standIn = `#!/bin/sh
cat >/dev/null
echo "$CNI_COMMAND $CNI_CONTAINERID $CNI_IFNAME $CNI_NETNS $([ -n "$CNI_NETNS" ] && readlink "$CNI_NETNS")" >>LOG
[ "$CNI_COMMAND" = DEL ] || echo '{"cniVersion":"0.4.0","ips":[{"version":"4","address":"10.9.8.7/24"}]}'
`

// TestNetwork: a container is connected before its program runs, in its own
// namespace, and disconnected when it is removed. A sandbox is not connected.
func TestNetwork(t *testing.T) {
	dir := t.TempDir()
	log := filepath.Join(dir, "log")
	conf := `{"cniVersion":"0.4.0","name":"lab","plugins":[{"type":"standin"}]}`
	for name, text := range map[string]string{"10-lab.conflist": conf, "standin": strings.ReplaceAll(standIn, "LOG", log)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	host, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", "lab"} {
		o := options()
		o.CNIConf, o.CNIBin, o.Network = dir, dir, name
		d, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		id := launch(t, d, "read:/etc/hosts")
		if err := d.Start(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if out := output(t, d, id); !strings.Contains(strings.Join(out, "\n"), "localhost") {
			t.Errorf("/etc/hosts: %q", out)
		}
		if err := d.Remove(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		b, _ := os.ReadFile(log)
		lines := strings.Split(strings.TrimSpace(string(b)), "\n")
		if len(lines) != 2 || !strings.HasPrefix(lines[0], "ADD "+id+" eth0 /proc/") || !strings.HasPrefix(lines[1], "DEL "+id+" eth0") ||
			!strings.Contains(lines[0], "net:[") || strings.Contains(lines[0], host) {
			t.Errorf("network %q: the plugin was asked\n%s", name, b)
		}
		_ = os.Remove(log)
	}

	o := options()
	o.CNIConf, o.CNIBin, o.Network = dir, dir, ""
	d, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	id, err := d.Create(t.Context(), containers.Spec{Name: "carma-suite-shut-in", Image: toolRef, Command: []string{"interfaces"}, Sandbox: &containers.Sandbox{}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Remove(context.Background(), id) }()
	if err := d.Start(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if out := output(t, d, id); len(out) != 1 || out[0] != "lo" {
		t.Errorf("a sandbox has %q", out)
	}
	if b, err := os.ReadFile(log); err == nil {
		t.Errorf("a sandbox was connected: %s", b)
	}
}

// TestNetworkMissing: a missing network is a fault of the machine, not of the
// task.
func TestNetworkMissing(t *testing.T) {
	o := options()
	o.CNIConf, o.Network = t.TempDir(), "lab"
	d, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	id := launch(t, d, "out:never")
	if err := d.Start(t.Context(), id); err == nil || !strings.Contains(err.Error(), `"lab"`) {
		t.Errorf("start: %v", err)
	}
	e, err := d.Wait(t.Context(), id)
	if v := containers.Classify(e, nil, containers.Facts{}); err != nil || v.Class != containers.ClassInfrastructure {
		t.Errorf("Wait = %+v, %v, classified as %s", e, err, v.Class)
	}
	if _, err := New(Options{Dir: t.TempDir(), Network: "host"}); err == nil {
		t.Error("the host's network was accepted")
	}
}
