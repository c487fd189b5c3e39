package taskfile

import (
	"encoding/json"
	"testing"

	"carma/runner/api"
)

// TestWrite: a written file reads back as the same submission, for each field that one text can
// set.
func TestWrite(t *testing.T) {
	for _, s := range []api.Submit{
		{Image: "train:1", Command: []string{"train.py", "--lr", "0.1", "a b", "#x", "{i}", "yes", "1e3", "- x", "k: v", `"q"`, "ü\t"}, Mem: 12 << 30, GPUs: 2, TimeLimit: 36 * 3600e9, Priority: "low", Retries: 3},
		{Image: "train:1", NoGPU: true, HostMem: 1536 << 20, CPUs: 1.5, ContainerOptions: api.ContainerOptions{ShmSize: 12345}, Env: []string{"A=1", "B=x=y", "C=", "D=a\nb", "E= #"}, Labels: map[string]string{"a": "b", "c": ""}, IdleStop: api.Never},
		{Image: "train:1", GPUIDs: []string{"0", "3"}, GPUs: 2, Exclusive: true, Probe: true, Mounts: []api.Mount{{Source: "/a b", Target: "/x", ReadOnly: true}, {Source: "/c", Target: "/d"}}, Slot: 90e9},
		{Image: "train:1", GPUs: api.AllGPUs, EstModel: "resnet50", BatchSize: 64, Train: map[string]string{"precision": "bf16"}, ContainerOptions: api.ContainerOptions{Ulimits: asSet(t, "ulimit", "memlock=-1", "nofile=1024:2048").Ulimits, Ports: asSet(t, "publish", "8888", "127.0.0.1:1:2").Ports, Init: true, Interactive: true, TTY: true}},
		{Conda: "/opt/exp", Command: []string{"python", "x.py"}, ContainerOptions: api.ContainerOptions{WorkDir: "/home/ann"}, Params: 25000000, Family: "cnn", BatchSize: 1, Name: "n"},
	} {
		content, err := Write(&s)
		if err != nil {
			t.Fatal(err)
		}
		file, err := Parse("task", content)
		if err != nil || len(file.Tasks) != 1 {
			t.Errorf("%v of\n%s", err, content)
			continue
		}
		all, err := file.Tasks[0].Expand()
		if err != nil || len(all) != 1 {
			t.Fatalf("%v, %d of\n%s", err, len(all), content)
		}
		got := all[0]
		want := s
		want.Mounts, got.Mounts = nil, nil // onThisHost makes them of volumes
		if len(file.Tasks[0].Volumes) != len(s.Mounts) {
			t.Errorf("volumes %q of %v", file.Tasks[0].Volumes, s.Mounts)
		}
		a, _ := json.Marshal(want)
		b, _ := json.Marshal(got)
		if string(a) != string(b) {
			t.Errorf("of\n%sread\n%s\nwant\n%s", content, b, a)
		}
	}
}

// asSet returns a submission with a field set to these texts.
func asSet(t *testing.T, name string, texts ...string) (s api.Submit) {
	f, _ := api.FieldNamed(name)
	for _, text := range texts {
		if err := f.Set(&s, text); err != nil {
			t.Fatal(err)
		}
	}
	return s
}
