package run

import (
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"carma/cmd/carma/cli"
	"carma/configs/dockerflags"
	"carma/runner/api"
)

// dockerFlags are the long flags of docker run 28.2.2, from its help.
const dockerFlags = `add-host annotation attach blkio-weight blkio-weight-device cap-add cap-drop cgroup-parent cgroupns cidfile cpu-count cpu-percent cpu-period
cpu-quota cpu-rt-period cpu-rt-runtime cpu-shares cpus cpuset-cpus cpuset-mems detach detach-keys device device-cgroup-rule device-read-bps device-read-iops
device-write-bps device-write-iops disable-content-trust dns dns-option dns-search domainname entrypoint env env-file expose gpus group-add health-cmd health-interval
health-retries health-start-interval health-start-period health-timeout help hostname init interactive io-maxbandwidth io-maxiops ip ip6 ipc isolation kernel-memory
label label-file link link-local-ip log-driver log-opt mac-address memory memory-reservation memory-swap memory-swappiness mount name network network-alias
no-healthcheck oom-kill-disable oom-score-adj pid pids-limit platform privileged publish publish-all pull quiet read-only restart rm runtime security-opt shm-size
sig-proxy stop-signal stop-timeout storage-opt sysctl tmpfs tty ulimit use-api-socket user userns uts volume volume-driver volumes-from workdir`

// TestDockerFlags checks that the table contains exactly the flags of docker run, and that
// carma has exactly the flags that the table marks as taken.
func TestDockerFlags(t *testing.T) {
	cmd := Command(nil)
	cmd.InitDefaultHelpFlag()
	names := strings.Fields(dockerFlags)
	if len(names) < 98 {
		t.Fatalf("only %d flags", len(names))
	}
	taken := 0
	for _, name := range names {
		f, is := dockerflags.Named(name)
		if !is {
			t.Errorf("nothing is said of --%s", name)
			continue
		}
		flag, why := cmd.Flags().Lookup(name), DockerHint(name)
		if has := f.Verdict < dockerflags.Left || hasValues(f); (flag != nil) != has || (why != "") == has || (f.Why == "") != (f.Verdict == dockerflags.Taken) {
			t.Errorf("--%s: verdict %d, a flag: %v; refused: %q", name, f.Verdict, flag != nil, why)
		}
		if flag != nil {
			taken++
		}
	}
	t.Logf("%d of %d are taken", taken, len(names))
	for _, f := range dockerflags.All() {
		if !slices.Contains(names, f.Name) {
			t.Errorf("--%s is no flag of docker run", f.Name)
		}
	}
}

// TestDockerMeaning: a flag with another name has the same meaning.
func TestDockerMeaning(t *testing.T) {
	o, cmd := options{}, &cobra.Command{}
	o.flags(cmd)
	err := cmd.ParseFlags(strings.Fields("--rm --quiet --memory 8g --pids-limit 100 --stop-timeout 30 --label a=b -u 1000:1000 --mount type=bind,source=/tmp,target=/data,readonly --gpus count=2,capabilities=gpu"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := o.submit([]string{"img"})
	if err != nil || s.HostMem != 8<<30 || s.Pids != 100 || s.StopGrace.Seconds() != 30 || s.Labels["a"] != "b" || s.GPUs != 2 || s.User != "1000:1000" {
		t.Errorf("%+v, %v", s, err)
	}
	if len(s.Mounts) != 1 || s.Mounts[0].Source != "/tmp" || s.Mounts[0].Target != "/data" || !s.Mounts[0].ReadOnly {
		t.Errorf("its mounts: %+v", s.Mounts)
	}
}

// TestDockerSame checks that only values that mean the default behaviour are accepted.
func TestDockerSame(t *testing.T) {
	uid := os.Getuid()
	for flags, retries := range map[string]int{
		"--restart no": 0, "--restart on-failure:4": 4, "--retries 2 --restart=no": 2, "--runtime nvidia": 0, "--security-opt no-new-privileges:true": 0,
		"--platform linux/" + runtime.GOARCH: 0,
	} {
		o, cmd := options{}, &cobra.Command{}
		o.flags(cmd)
		if err := cmd.ParseFlags(strings.Fields(flags)); err != nil || o.request.Retries != retries {
			t.Errorf("%s: %d retries, %v", flags, o.request.Retries, err)
		}
	}
	for flags, words := range map[string]string{
		"--restart always":                  `"always": --retries runs a task again`,
		"--restart on-failure:x":            `"x" is not a number of times`,
		"--runtime runc":                    "carma gives a task its GPUs",
		"--security-opt seccomp=unconfined": "tasks get no extra privileges",
		"--platform linux/s390x":            "tasks run on this machine",
	} {
		o, cmd := options{}, &cobra.Command{}
		o.flags(cmd)
		if err := cmd.ParseFlags(strings.Fields(flags)); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v, want %q", flags, err, words)
		}
	}
	drops := options{}
	cmd := &cobra.Command{}
	drops.flags(cmd)
	if err := cmd.ParseFlags([]string{"--cap-drop", "ALL"}); (err == nil) != (uid != 0) {
		t.Errorf("--cap-drop of user %d: %v", uid, err)
	}
}

// TestDockerMount checks that --mount is read as a line of CSV, like docker's.
func TestDockerMount(t *testing.T) {
	dir := t.TempDir() + "/a,b"
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for text, readOnly := range map[string]bool{
		`type=bind,"source=` + dir + `",target=/x`: false, `"src=` + dir + `",dst=/x,ro`: true, `"src=` + dir + `",dst=/x,readonly=0`: false, `"src=` + dir + `",dst=/x,readonly=true`: true,
	} {
		m, err := cli.MountOf(text)
		if err != nil || m.Source != dir || m.Target != "/x" || m.ReadOnly != readOnly {
			t.Errorf("%s: %+v, %v", text, m, err)
		}
	}
}

// TestDockerVolume checks the modes of -v that users copy from commands for other systems.
func TestDockerVolume(t *testing.T) {
	dir := t.TempDir()
	for mode, want := range map[string]struct{ taken, readOnly bool }{
		"ro": {true, true}, "rw": {true, false}, "ro,z": {true, true}, "Z": {true, false}, "cached": {true, false}, "delegated,ro": {true, true},
		"rprivate": {true, false}, "shared": {}, "nocopy": {}, "r": {}, "ro,": {}, "": {},
	} {
		m, err := cli.Mounts([]string{dir + ":/data:" + mode})
		if (err == nil) != want.taken || err == nil && m[0].ReadOnly != want.readOnly {
			t.Errorf("%q: %+v, %v", mode, m, err)
		}
	}
}

// TestDockerGPUs: each form of --gpus.
func TestDockerGPUs(t *testing.T) {
	for text, want := range map[string]struct {
		gpus, notes int
		which       string
	}{
		"all": {api.AllGPUs, 0, ""}, "2": {2, 0, ""}, "count=2": {2, 0, ""}, "count=all,capabilities=gpu": {api.AllGPUs, 0, ""},
		"device=0": {1, 0, "0"}, `"device=0,2"`: {2, 0, "0,2"}, `'"device=GPU-1,GPU-2",capabilities=utility'`: {2, 0, "GPU-1,GPU-2"}, "device=all": {api.AllGPUs, 0, ""},
		"device=1,1": {1, 0, "1"}, "capabilities=compute,utility": {1, 0, ""}, `all,"capabilities=graphics"`: {api.AllGPUs, 1, ""}, "driver=nvidia,count=3": {3, 0, ""},
	} {
		o, cmd := options{}, &cobra.Command{}
		o.flags(cmd)
		err := cmd.ParseFlags([]string{"--gpus", text})
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if s, err := o.submit([]string{"img"}); err != nil || s.GPUs != want.gpus || strings.Join(s.GPUIDs, ",") != want.which || len(o.notes) != want.notes {
			t.Errorf("%s: %d GPUs %s, notes %q, %v; want %v", text, s.GPUs, s.GPUIDs, o.notes, err, want)
		}
	}
}

// TestDockerWrong checks values that docker accepts and carma refuses.
func TestDockerWrong(t *testing.T) {
	for flags, words := range map[string]string{
		"--gpus two":                                                   `"two" is not a whole number`,
		"--gpus device=0,count=2":                                      "a count and devices; leave one of them out",
		"--gpus driver=amd":                                            "carma gives NVIDIA's GPUs",
		"--gpus options=x":                                             `unknown key "options"`,
		"--mount type=tmpfs,source=/x":                                 `unknown key "source"`,
		"--mount type=tmpfs,target=/proc/x":                            "/proc belongs to the engine",
		"--mount type=volume,source=v,target=/x":                       "only type=bind",
		"-u 1000:1000 --mount type=bind,target=/x":                     "needs source and target",
		"--mount typ=bind,source=/tmp,target=/x":                       `unknown key "typ"; nearest: type`,
		"-u 1000:1000 --mount type=bind,source=/tmp,target=/x,readnly": "nearest: readonly",
		"--mount source=/tmp,target=/x,ro=flase":                       "ro=flase; write ro=true or ro=false",
		"--mount type=tmpfs,target=/x,tmpfs-siz=1G":                    "nearest: tmpfs-size",
		`--mount source="/tmp,target=/x`:                               "its quotes do not match",
		"-v nowhere:/x":                                                "no such file or directory; carma mounts folders and has no named volumes; write for example ./nowhere",
		"-u 1000:1000 --mount type=bind,source=/tmp,target=/x,mode=1":  `unknown key "mode"`,
	} {
		o, cmd := options{}, &cobra.Command{}
		o.flags(cmd)
		err := cmd.ParseFlags(strings.Fields(flags))
		if err == nil {
			_, err = o.submit([]string{"img"})
		}
		if err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v, want %q", flags, err, words)
		}
	}
}

// TestDockerLine checks that commands of docker run from the documentation of vLLM and NGC are
// accepted, with the quotes that docker's CSV needs.
func TestDockerLine(t *testing.T) {
	o, cmd := options{}, &cobra.Command{}
	o.flags(cmd)
	line := []string{"--gpus", `"device=0,1","capabilities=compute,utility"`, "--shm-size=10.24gb", "-v", ".:/d:z", "--ipc=host", "--ulimit", "memlock=-1", "--ulimit", "stack=67108864", "--rm", "-i"}
	if err := cmd.ParseFlags(line); err != nil {
		t.Fatal(err)
	}
	s, err := o.submit([]string{"img"})
	if err != nil {
		t.Fatal(err)
	}
	const size = 10995116278 // 10.24 GiB, rounded to a byte
	if s.GPUs != 2 || !slices.Equal(s.GPUIDs, []string{"0", "1"}) || s.ShmSize != size || len(s.Mounts) != 1 || s.Mounts[0].Target != "/d" || s.Mounts[0].ReadOnly || s.IPC != "host" {
		t.Errorf("%+v", s)
	}
	if got := strings.Join(o.notes, "\n"); got != "-v .:/d:z: not honoured: files get no new SELinux label" {
		t.Errorf("notes %q", got)
	}
}
