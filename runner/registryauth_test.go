package runner

import (
	"encoding/json"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"carma/containers"
	"carma/containers/containerstest"
	"carma/internal/units"
	"carma/runner/api"
	"carma/runner/pull"
	"carma/runner/request"
)

const privateImage = "reg.example:5000/team/train:1"

var rightKey = containers.Credential{Username: "ann", Password: "s3cret-of-ann"}

// submits sends a task with a value of the header.
func (g *rig) submits(who request.Caller, s api.Submit, header string) (int, string) {
	g.t.Helper()
	body, err := json.Marshal(s)
	if err != nil {
		g.t.Fatal(err)
	}
	req := httptest.NewRequestWithContext(g.as(who), http.MethodPost, "/v1/tasks", strings.NewReader(string(body)))
	req.Header.Set("Content-Type", "application/json")
	if header != "" {
		req.Header.Set(api.RegistryAuthHeader, header)
	}
	w := httptest.NewRecorder()
	g.Handler().ServeHTTP(w, req)
	return w.Code, w.Body.String()
}

func headerOf(t *testing.T, by pull.Credentials) string {
	t.Helper()
	value, err := api.EncodeRegistryAuth(by)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// TestPrivateImage: an image of a private registry is fetched with its user's own credential,
// which is stored nowhere. Another user gets the image only with their own credential.
func TestPrivateImage(t *testing.T) {
	g := newRig(t)
	g.engine.AddImage(privateImage, containerstest.Image{Remote: true, Key: rightKey})
	s := api.Submit{Image: privateImage, Mem: int64(units.GiB)}
	right := headerOf(t, pull.Credentials{"reg.example:5000": rightKey})
	wrong := headerOf(t, pull.Credentials{"reg.example:5000": {Username: "bob", Password: "guess"}})
	other := headerOf(t, pull.Credentials{"docker.io": rightKey})
	for i, row := range []struct {
		who    request.Caller
		header string
		status int
		says   string
	}{
		{ann, "", 422, "log in with `docker login reg.example:5000` and submit again"},
		{ann, "no base64!", 400, "Carma-Registry-Auth is not base64"},
		{ann, wrong, 422, "unauthorized"},
		{ann, other, 422, "log in with"},
		{ann, right, 200, ""},
		{ann, "", 200, ""},
		{bob, "", 403, "is private: its registry reg.example:5000 gave it to another user"},
		{bob, wrong, 403, "does not give it to you"},
		{rootUser, "", 200, ""},
		{bob, right, 200, ""},
		{bob, "", 200, ""},
	} {
		status, text := g.submits(row.who, s, row.header)
		if status != row.status || !strings.Contains(text, row.says) {
			t.Errorf("%d: %s is answered %d %s, want %d with %q", i, row.who.Name, status, text, row.status, row.says)
		}
		if strings.Contains(text, "s3cret") || strings.Contains(text, "guess") {
			t.Errorf("%d: the answer has a password: %s", i, text)
		}
	}
	found := false
	err := filepath.WalkDir(g.opt.DataDir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		if strings.Contains(string(b), "s3cret-of-ann") {
			t.Errorf("%s has the password", path)
		}
		found = found || strings.Contains(string(b), "sha256:"+privateImage)
		return err
	})
	if err != nil || !found {
		t.Errorf("the image's users are not found in the data folder: %v", err)
	}
}

// TestPrivateImageLater: a task that is accepted while the engine does not answer has its image
// fetched later, and only with the credential of its submission.
func TestPrivateImageLater(t *testing.T) {
	g := newRig(t)
	g.engine.AddImage(privateImage, containerstest.Image{Remote: true, Key: rightKey})
	g.engine.Down()
	submit := func(who request.Caller, by pull.Credentials) string {
		one, err := g.Runner.admission.Submit(pull.WithCredentials(g.as(who), by), who, api.Submit{Image: privateImage, Mem: int64(units.GiB)})
		if err != nil {
			t.Fatal(err)
		}
		return one.Name
	}
	with := submit(ann, pull.Credentials{"reg.example:5000": rightKey})
	g.engine.Up()
	if v := g.finished(with); v.Phase != "succeeded" {
		t.Fatalf("%s: %s", v.Phase, v.Reason)
	}
	g.engine.Down()
	without := submit(bob, nil)
	g.engine.Up()
	if v := g.finished(without); v.Phase != "failed" || !strings.Contains(v.Reason, "is private") {
		t.Errorf("it failed by %q", v.Reason)
	}
	for _, ref := range []string{with, without} {
		rec, _ := g.find.Find(ref)
		if by := g.pull.Of(int64(rec.ID())); by != nil {
			t.Errorf("the credential of %s is still kept", ref)
		}
	}
}
