package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"

	"carma/cmd/carma/cli"
	"carma/cmd/carma/root"
	"carma/cmd/carma/settings"
)

const manifests = "../../../../configs/kubernetes"

// kustomization contains the fields of a kustomization file that the tests read.
type kustomization struct {
	Resources []string `yaml:"resources"`
	Images    []struct {
		Name   string `yaml:"name"`
		NewTag string `yaml:"newTag"`
	} `yaml:"images"`
	Patches []struct {
		Path string `yaml:"path"`
	} `yaml:"patches"`
}

func readYAML(t *testing.T, path string, into any) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err == nil {
		err = yaml.Unmarshal(b, into)
	}
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// manifestFiles returns a folder's files of objects and of patches. They must be exactly the
// files that its kustomization names.
func manifestFiles(t *testing.T, folder string) (files []string) {
	t.Helper()
	var k kustomization
	readYAML(t, filepath.Join(folder, "kustomization.yaml"), &k)
	named := []string{"kustomization.yaml"}
	for _, r := range k.Resources {
		if strings.HasSuffix(r, ".yaml") {
			named = append(named, r)
		}
	}
	for _, p := range k.Patches {
		named = append(named, p.Path)
	}
	all, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var there []string
	for _, f := range all {
		there = append(there, f.Name())
	}
	slices.Sort(named)
	if !slices.Equal(named, there) {
		t.Errorf("%s: the kustomization names %v, the folder has %v", folder, named, there)
	}
	for _, f := range named {
		if f != "kustomization.yaml" {
			files = append(files, filepath.Join(folder, f))
		}
	}
	return files
}

// manifestFolders returns the base, the overlays and the components.
func manifestFolders(t *testing.T) []string {
	t.Helper()
	folders, err := filepath.Glob(manifests + "/overlays/*")
	if err != nil || len(folders) < 2 {
		t.Fatalf("overlays %v, %v", folders, err)
	}
	components, err := filepath.Glob(manifests + "/components/*")
	if err != nil || len(components) == 0 {
		t.Fatalf("components %v, %v", components, err)
	}
	return append(append(folders, components...), manifests+"/base")
}

// manifestObjects returns the objects of all files, including patches. Unknown fields are
// errors.
func manifestObjects(t *testing.T) (list []runtime.Object) {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{admissionregistrationv1.AddToScheme, corev1.AddToScheme, appsv1.AddToScheme, rbacv1.AddToScheme, networkingv1.AddToScheme, resourcev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	decoder := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme, json.SerializerOptions{Yaml: true, Strict: true})
	for _, folder := range manifestFolders(t) {
		for _, path := range manifestFiles(t, folder) {
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for part := range bytes.SplitSeq(b, []byte("\n---\n")) {
				o, _, err := decoder.Decode(part, nil, nil)
				if err != nil {
					t.Errorf("%s: %v", path, err)
					continue
				}
				list = append(list, o)
			}
		}
	}
	return list
}

// podsOf returns the pod specs of the daemon and the agents.
func podsOf(list []runtime.Object) (pods []*corev1.PodSpec) {
	for _, o := range list {
		switch o := o.(type) {
		case *appsv1.StatefulSet:
			pods = append(pods, &o.Spec.Template.Spec)
		case *appsv1.DaemonSet:
			pods = append(pods, &o.Spec.Template.Spec)
		}
	}
	return pods
}

// TestManifestsRun checks that the manifests run commands of this program, with existing flags
// and environment variables.
func TestManifestsRun(t *testing.T) {
	program := root.New(cli.New(strings.NewReader(""), io.Discard, io.Discard, "test"), nil)
	parses := func(args []string) {
		cmd, rest, err := program.Find(args)
		if err != nil || cmd == program {
			t.Errorf("carma %v: no such command: %v", args, err)
			return
		}
		flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
		flags.AddFlagSet(cmd.Flags())
		flags.AddFlagSet(cmd.InheritedFlags())
		if err := flags.Parse(rest); err != nil || flags.NArg() > 0 {
			t.Errorf("carma %v: %v, and the arguments %v", args, err, flags.Args())
		}
	}
	keys := settings.Keys()
	ran := 0
	for _, pod := range podsOf(manifestObjects(t)) {
		for _, c := range pod.Containers {
			if len(c.Args) > 0 {
				ran++
				parses(c.Args)
			}
			for _, p := range []*corev1.Probe{c.StartupProbe, c.LivenessProbe, c.ReadinessProbe} {
				if p != nil && p.Exec != nil && p.Exec.Command[0] == "carma" {
					parses(p.Exec.Command[1:])
				}
			}
			for _, e := range c.Env {
				name, ours := strings.CutPrefix(e.Name, "CARMA_")
				if ours && !slices.Contains(keys, strings.ToLower(strings.ReplaceAll(name, "_", "-"))) {
					t.Errorf("the variable %s is no setting", e.Name)
				}
			}
		}
	}
	if ran < 3 {
		t.Errorf("%d containers run something, want daemon, agent and that of an overlay", ran)
	}
}

// TestManifestsConfig checks that the daemon accepts the configuration of the manifests.
func TestManifestsConfig(t *testing.T) {
	var seen int
	for _, o := range manifestObjects(t) {
		m, ok := o.(*corev1.ConfigMap)
		if !ok {
			continue
		}
		seen++
		file := filepath.Join(t.TempDir(), "config.yaml")
		if err := os.WriteFile(file, []byte(m.Data["config.yaml"]), 0o600); err != nil {
			t.Fatal(err)
		}
		t.Setenv("CARMA_CONFIG", file)
		config, _, err := settings.Load(nil)
		if err != nil || config.Driver != "kubernetes" {
			t.Errorf("driver %q, %v", config.Driver, err)
		}
	}
	if seen != 1 {
		t.Errorf("%d configurations", seen)
	}
}

// TestManifestsVersion checks that the image's tag and the chart's versions are this program's
// version.
func TestManifestsVersion(t *testing.T) {
	changes, err := os.ReadFile("../../../../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`(?m)^## ([0-9.]+)`).FindSubmatch(changes)
	if version == nil {
		t.Fatal("CHANGELOG.md has no version")
	}
	want := string(version[1])
	var k kustomization
	readYAML(t, manifests+"/base/kustomization.yaml", &k)
	if len(k.Images) != 1 || k.Images[0].NewTag != want {
		t.Errorf("images %v, want tag %s", k.Images, want)
	}
	var chart struct {
		Version, Name string
		AppVersion    string `yaml:"appVersion"`
	}
	readYAML(t, manifests+"/chart/Chart.yaml", &chart)
	if chart.Version != want || chart.AppVersion != want {
		t.Errorf("the chart's versions are %s and %s, want %s", chart.Version, chart.AppVersion, want)
	}
	var values struct {
		Image struct{ Repository, Tag string }
	}
	readYAML(t, manifests+"/chart/values.yaml", &values)
	for _, pod := range podsOf(manifestObjects(t)) {
		for _, c := range pod.Containers {
			if c.Image != "" && c.Image != k.Images[0].Name {
				t.Errorf("container %s has image %s, want %s", c.Name, c.Image, k.Images[0].Name)
			}
		}
	}
	if values.Image.Repository != k.Images[0].Name || values.Image.Tag != "" {
		t.Errorf("the chart's image is %+v", values.Image)
	}
	made, err := os.ReadFile("../../../../images/carma/image.sh")
	if err != nil || !strings.Contains(string(made), fmt.Sprintf("%q:$tag", k.Images[0].Name)) && !strings.Contains(string(made), k.Images[0].Name+":$tag") {
		t.Errorf("images/carma/image.sh makes no %s: %v", k.Images[0].Name, err)
	}
}
