package label

import (
	"maps"
	"testing"

	"carma/containers"
	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/api"
	"carma/runner/record"
)

// TestDescribe: what a launch granted can be read from the labels of its container.
func TestDescribe(t *testing.T) {
	rec := &record.Record{Name: "train", User: "ann", UID: 1000, GID: 100, Submit: api.Submit{Image: "a:1"}}
	l := model.Launch{Task: 7, Attempt: 2, Grants: []model.Grant{{GPU: "GPU-1", Memory: units.GiB}, {GPU: "GPU-2", Memory: 2 * units.GiB}}}
	labels := Describe(rec, l, containers.AttachCDI)
	grants, err := ParseGrants(labels)
	if err != nil || len(grants) != 2 || grants[0] != l.Grants[0] || grants[1] != l.Grants[1] {
		t.Errorf("%v, %v", grants, err)
	}
	if labels[UID] != "1000" || labels[Grant] != "2147483648" || labels[GPUs] != "GPU-1,GPU-2" || labels[Name] != "train" {
		t.Errorf("%v", labels)
	}
	l.Grants = nil
	if grants, err := ParseGrants(Describe(rec, l, "")); err != nil || grants != nil {
		t.Errorf("without a GPU: %v, %v", grants, err)
	}
}

// TestParseGrants: labels of older programs have one size for all GPUs; a wrong label is an error.
func TestParseGrants(t *testing.T) {
	old, err := ParseGrants(map[string]string{GPUs: "GPU-1,GPU-2", Grant: "1024"})
	if err != nil || len(old) != 2 || old[1] != (model.Grant{GPU: "GPU-2", Memory: 1024}) {
		t.Errorf("%v, %v", old, err)
	}
	for _, wrong := range []string{"GPU-1", "GPU-1=x", "=1", "GPU-1=-1"} {
		if got, err := ParseGrants(map[string]string{Grants: wrong}); err == nil {
			t.Errorf("%q: %v", wrong, got)
		}
	}
}

// TestIdentity: the labels and the name of a container identify its attempt.
func TestIdentity(t *testing.T) {
	id := Identity("ab12", 7, 2, "n")
	if want := (map[string]string{Instance: "ab12", Task: "7", Attempt: "2", Nonce: "n"}); !maps.Equal(id, want) {
		t.Errorf("%v", id)
	}
	if _, has := Identity("ab12", 7, 2, "")[Nonce]; has {
		t.Error("a task without a nonce has the label")
	}
	task, attempt, ok := ParseAttempt(id)
	if task != 7 || attempt != 2 || !ok {
		t.Errorf("%d, %d, %t", task, attempt, ok)
	}
	if _, _, ok := ParseAttempt(map[string]string{Task: "7"}); ok {
		t.Error("labels without an attempt name one")
	}
	if got := ContainerName("ab12", 7, 2); got != "carma-ab12-7-2" {
		t.Error(got)
	}
}
