package compose

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

const base = "services:\n  a:\n    image: x\n"

// bomb returns a file of n levels of ten aliases each.
func bomb(n int) string {
	var b strings.Builder
	b.WriteString("x0: &x0 [lol, lol, lol, lol, lol, lol, lol, lol, lol, lol]\n")
	for i := 1; i < n; i++ {
		d, p := string(rune('0'+i)), string(rune('0'+i-1))
		b.WriteString("x" + d + ": &x" + d + " [" + strings.Repeat("*x"+p+", ", 9) + "*x" + p + "]\n")
	}
	return b.String() + base
}

func TestBadInput(t *testing.T) {
	tests := map[string]struct{ content, want string }{
		"empty":             {"", "f.yaml:1: empty"},
		"no services":       {"name: x\n", "f.yaml:1: services: no service"},
		"a list":            {"- a\n- b\n", "f.yaml:1: keys and values are missing"},
		"broken":            {base + "  b: [1, 2\n", "f.yaml:4: not YAML: did not find expected"},
		"tab":               {"services:\n\ta: {image: x}\n", "f.yaml:2: not YAML: found character that cannot start any token"},
		"two documents":     {base + "---\n" + base, "f.yaml:4: a second document begins here"},
		"key twice":         {base + "    image: y\n", "f.yaml:4: image: a second time"},
		"cycle":             {base + "    depends_on: [c]\n  b:\n    image: x\n    depends_on: [a]\n  c:\n    image: x\n    depends_on: {b: {condition: service_started}}\n", "f.yaml:7: services.b.depends_on: services that wait for each other never start: a after c after b after a"},
		"itself":            {base + "    depends_on: [a]\n", "f.yaml:4: services.a.depends_on: services that wait for each other never start: a after a"},
		"unknown service":   {base + "    depends_on:\n      - aa\n", `f.yaml:5: services.a.depends_on: unknown service "aa"; nearest: a`},
		"large":             {base + strings.Repeat("#", MaxSize), "f.yaml: larger than 1024 KiB"},
		"bomb":              {bomb(8), "f.yaml:1: more than 100000 values, aliases included"},
		"alias in itself":   {"x: &x [*x]\n" + base, "f.yaml:1: nested more than 64 levels deep"},
		"deep":              {"x: " + strings.Repeat("[", 100) + strings.Repeat("]", 100) + "\n" + base, "f.yaml:1: nested more than 64 levels deep"},
		"unknown alias":     {base + "x: *nobody\n", "f.yaml: not YAML: unknown anchor 'nobody' referenced"},
		"other tag":         {base + "    ports: !secret x\n", "f.yaml:4: the tag !secret means nothing in a Compose file"},
		"include":           {base + "include: [other.yaml]\n", "f.yaml:4: include: $DIR/other.yaml: no such file"},
		"other file":        {base + "    extends: {file: b.yaml, service: b}\n", "f.yaml:4: services.a.extends.file: $DIR/b.yaml: no such file"},
		"required variable": {base + "    command: --lr ${LR:?the learning rate}\n", "f.yaml:4: services.a.command: the variable LR is not set: the learning rate"},
		"dollar":            {base + "    command: ${LR\n", "f.yaml:4: services.a.command: $ begins a variable"},
		"env file":          {base + "    env_file: gone.env\n", "f.yaml:4: services.a.env_file: env file"},
		"wrong type":        {base + "    command: {a: b}\n", "f.yaml:4: services.a.command: must be"},
		"unknown top key":   {base + "servises: {}\n", "f.yaml:4: servises: unknown key; nearest: services"},
		"not a service":     {"services:\n  a: 7\n", "f.yaml:2: services.a: keys and values are missing"},
		"no image":          {"services:\n  a:\n    command: x\n", "f.yaml:2: services.a: service \"a\" has neither an image nor a build"},
		"profile":           {base + "    depends_on: [b]\n  b: {image: x, profiles: [p]}\n", `f.yaml:4: services.a.depends_on`},
		"all in profiles":   {base + "    profiles: [p, q]\n", "f.yaml:1: services: all belong to profiles; choose with --profile: p, q"},
		"no replicas":       {base + "    depends_on: [b]\n  b: {image: x, scale: 0}\n", "f.yaml:4: services.a.depends_on.b: b does not run: it has no replicas"},
		"memory":            {base + "    x-carma: {mem: lots}\n", "f.yaml:4: services.a.x-carma.mem: "},
		"no number":         {base + "    cpus: .nan\n", "f.yaml:4: .nan is no number"},
		"endless":           {base + "    x-carma: {cpus: -.Inf}\n", "f.yaml:4: -.Inf is no number"},
		"processors":        {base + "    cpus: -1\n", "f.yaml:4: services.a.cpus: -1 is not a number of processors from 0.01 on; write for example 4 or 1.5"},
		"few processors":    {base + "    deploy: {resources: {limits: {cpus: '0.001'}}}\n", "f.yaml:4: services.a.deploy.resources.limits.cpus: 0.001 is not a number of processors"},
		"NaN processors":    {base + "    deploy: {resources: {limits: {cpus: 'nan'}}}\n", "f.yaml:4: services.a.deploy.resources.limits.cpus: NaN is not a number of processors"},
		"processes":         {base + "    pids_limit: -7\n", "f.yaml:4: services.a.pids_limit: -7 is not a number of processes"},
		"memory limit":      {base + "    mem_limit: -1\n", "f.yaml:4: services.a.mem_limit: a negative amount of memory"},
		"probe and memory":  {base + "    x-carma: {mem: 1G, probe: true}\n", "f.yaml:4: services.a.x-carma.probe: mem says"},
		"array of replicas": {base + "    scale: 2\n    x-carma: {array: 1-3}\n", "f.yaml:5: services.a.x-carma: it has replicas as well"},
		"workdir":           {base + "    working_dir: src\n", "f.yaml:4: services.a.working_dir: src is not absolute"},
		"name":              {"name: 17\n" + base, `f.yaml:1: name: "17" cannot be the name of a suite`},
		"shell words":       {base + "    command: echo 'x\n", "f.yaml:4: services.a.command: "},
		"gpus":              {base + "    gpus: some\n", "f.yaml:4: services.a.gpus: "},
		"gpus twice":        {base + "    gpus: [{count: 1}]\n    x-carma: {gpus: 2}\n", "f.yaml:4: services.a.gpus: x-carma says how many GPUs as well"},
		"of Swarm":          {base + "    deploy: {resources: {reservations: {generic_resources: [{discrete_resource_spec: {kind: NVIDIA-GPU, value: 2}}]}}}\n", "f.yaml:4: services.a.deploy.resources.reservations.generic_resources: GPUs are reserved by devices"},
		"gpus 0":            {base + "    gpus: [{count: 0}]\n", "f.yaml:4: services.a.gpus.count: a count of 0"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			folder := filepath.Join(t.TempDir(), "work")
			tc.want = strings.ReplaceAll(tc.want, "$DIR", folder)
			_, err := Load(t.Context(), "f.yaml", []byte(tc.content), Options{Folder: folder})
			var wrong *Error
			if err == nil || !errors.As(err, &wrong) || !strings.HasPrefix(err.Error(), tc.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v\nwant %s", err, tc.want)
			}
		})
	}
}

func TestRead(t *testing.T) {
	if _, err := Read("f.yaml", strings.NewReader(strings.Repeat("x", 10<<20))); err == nil || !strings.Contains(err.Error(), "larger than 1024 KiB") {
		t.Errorf("10 MB: %v", err)
	}
}

func TestVariables(t *testing.T) {
	o := Options{Folder: t.TempDir(), EnvFiles: []string{"/nonexistent/x.env"}}
	if _, err := Load(t.Context(), "f.yaml", []byte(base), o); err == nil || err.Error() != "/nonexistent/x.env: no such file or directory" {
		t.Errorf("a file that is not there: %v", err)
	}
}

// FuzzParse checks that for any file the tree has a limited size and no aliases, and that an
// error has one line.
func FuzzParse(f *testing.F) {
	for _, s := range []string{base, bomb(3), bomb(9), "x: &x [*x]\n", "a: &a {b: 1}\nc: {<<: *a, d: 2}\n", "a: &a {<<: *a}\n", "? [a]\n: b\n", "a: !reset x", base + "    command: ${A:-${B}} $$ ${C?d}\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		d, err := parse("f.yaml", content)
		if err == nil {
			err = d.interpolate(map[string]string{"A": "1"})
		}
		if err != nil {
			var wrong *Error
			if !errors.As(err, &wrong) || !utf8.ValidString(err.Error()) && utf8.Valid(content) {
				t.Errorf("%v", err)
			}
			return
		}
		if n := count(d.root.Content); n > maxNodes {
			t.Errorf("%d nodes", n)
		}
		c := &checker{document: d}
		_ = c.first()
		c.keys(d.root, "", topKeys)
	})
}

func count(nodes []*yaml.Node) int {
	n := len(nodes)
	for _, c := range nodes {
		n += count(c.Content)
	}
	return n
}
