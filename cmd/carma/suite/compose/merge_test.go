package compose

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// TestSeveralFiles: files over a file give the suite that the same in one file gives.
func TestSeveralFiles(t *testing.T) {
	for name, tc := range map[string]struct{ first, over, one string }{
		"values": {
			"services:\n  a: {image: i, command: one two, shm_size: 1g}\n", "services:\n  a: {image: j, command: [three]}\n",
			"services:\n  a: {image: j, command: [three], shm_size: 1g}\n",
		},
		"a list and a mapping": {
			"services:\n  a: {image: i, environment: [A=1, B=2], depends_on: [b]}\n  b: {image: i}\n  c: {image: i, healthcheck: {test: x}}\n",
			"services:\n  a: {environment: {B: 3}, depends_on: {c: {condition: service_healthy}}}\n",
			"services:\n  a: {image: i, environment: [A=1, B=3], depends_on: {b: {condition: service_started}, c: {condition: service_healthy}}}\n  b: {image: i}\n  c: {image: i, healthcheck: {test: x}}\n",
		},
		"a service more": {
			"services:\n  a: {image: i}\n", "services:\n  b: {image: i, gpus: all}\n",
			"services:\n  a: {image: i}\n  b: {image: i, gpus: all}\n",
		},
		"settings of carma": {
			"x-carma: {priority: low}\nservices:\n  a: {image: i, x-carma: {mem: 1G, batch-size: 8}}\n", "services:\n  a: {x-carma: {mem: 2G, gpus: 2}}\n",
			"x-carma: {priority: low}\nservices:\n  a: {image: i, x-carma: {mem: 2G, batch-size: 8, gpus: 2}}\n",
		},
		"GPUs": {
			"services:\n  a: {image: i}\n", "services:\n  a: {deploy: {resources: {reservations: {devices: [{driver: nvidia, count: 1, capabilities: [gpu]}]}}}}\n",
			"services:\n  a: {image: i, deploy: {resources: {reservations: {devices: [{driver: nvidia, count: 1, capabilities: [gpu]}]}}}}\n",
		},
		"reset": {
			"services:\n  a: {image: i, privileged: true, ports: ['5000:5000'], x-carma: {task: true, mem: 1G}}\n", "services:\n  a: {privileged: !reset null, ports: !reset [], x-carma: {mem: !reset null}}\n",
			"services:\n  a: {image: i, x-carma: {task: true}}\n",
		},
		"override": {
			"services:\n  a: {image: i, ports: ['5000:5000'], cap_add: [SYS_ADMIN]}\n", "services:\n  a: {ports: !override ['6000:6000'], cap_add: !override [CHOWN]}\n",
			"services:\n  a: {image: i, ports: ['6000:6000'], cap_add: [CHOWN]}\n",
		},
		"a mount instead of another": {
			"services:\n  a: {image: i, volumes: ['/var/run/docker.sock:/x', 'data:/data']}\nvolumes: {data: }\n", "services:\n  a: {volumes: ['data:/x']}\n",
			"services:\n  a: {image: i, volumes: ['data:/x', 'data:/data']}\nvolumes: {data: }\n",
		},
		"a build": {
			"services:\n  a: {build: .}\n", "services:\n  a: {build: {args: {A: 1}}}\n",
			"services:\n  a: {build: {context: ., args: {A: 1}}}\n",
		},
		"the last name": {"name: x\nservices:\n  a: {image: i}\n", "name: y\n", "name: y\nservices:\n  a: {image: i}\n"},
	} {
		t.Run(name, func(t *testing.T) {
			o := Options{Folder: "/nonexistent/suite", UID: 1000, GID: 1000}
			want, err := Load(t.Context(), "one.yaml", []byte(tc.one), o)
			if err != nil {
				t.Fatal(err)
			}
			o.Over = []File{{"over.yaml", []byte(tc.over)}}
			got, err := Load(t.Context(), "first.yaml", []byte(tc.first), o)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range []*Suite{got, want} {
				s.Warnings = nil
				for i := range s.Services {
					s.Services[i].Line = 0
				}
				for i := range s.Helpers {
					s.Helpers[i].Line = 0
				}
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("got\n%s\nwant\n%s", describe(t, got, nil), describe(t, want, nil))
			}
		})
	}
}

// TestSeveralFilesSayWhere: the message about an error, a warning or a variable that is
// not set names its file.
func TestSeveralFilesSayWhere(t *testing.T) {
	load := func(first, over string) (*Suite, error) {
		return Load(t.Context(), "first.yaml", []byte(first), Options{Folder: "/nonexistent/suite", UID: 1000, GID: 1000, Over: []File{{"over.yaml", []byte(over)}}})
	}
	const base = "services:\n  a:\n    image: i\n    privileged: false\n"
	for name, tc := range map[string]struct{ over, want string }{
		"a wall":       {"services:\n  a:\n    privileged: true\n", "over.yaml:3: services.a.privileged: tasks get no extra privileges"},
		"a key":        {"services:\n  a:\n    imagee: j\n", "over.yaml:3: services.a.imagee: unknown key; nearest: image"},
		"not YAML":     {"services: [\n", "over.yaml:2: not YAML"},
		"nothing":      {"", "over.yaml:1: empty"},
		"the loader's": {"services:\n  a:\n    command: {x: y}\n", "over.yaml:3: services.a.command: must be"},
		"a kind":       {"services:\n  a:\n    x-carma: {est-model: 7, mem: lots}\n", "over.yaml:3: services.a.x-carma.mem: "},
	} {
		if _, err := load(base, tc.over); err == nil || !strings.HasPrefix(err.Error(), tc.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v\nwant %s", name, err, tc.want)
		}
	}
	s, err := load(base, "services:\n  a:\n    image: i${LR}\n    tty: true\n    logging: {driver: none}\n")
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(s.Warnings, "\n"); !strings.Contains(got, "over.yaml:3: services.a.image: the variable LR is not set") || !strings.Contains(got, "over.yaml:5: services.a.logging: ") {
		t.Errorf("warned of\n%s", got)
	}
}

// TestIncludeOfSeveralFiles: the files of one entry of include are merged, with the
// variables of their own folder.
func TestIncludeOfSeveralFiles(t *testing.T) {
	folder := t.TempDir()
	for path, text := range map[string]string{
		"db/compose.yaml": "services:\n  db: {image: \"db:${TAG}\", privileged: true}\n",
		"db/more.yaml":    "services:\n  db: {privileged: !reset null, shm_size: 1g}\n",
		"db/.env":         "TAG=7\n",
	} {
		path = filepath.Join(folder, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s, err := Load(t.Context(), "f.yaml", []byte("include:\n  - path: [db/compose.yaml, db/more.yaml]\nservices:\n  a: {image: i, depends_on: [db]}\n"), Options{Folder: folder, Name: "s"})
	if err != nil {
		t.Fatal(err)
	}
	if h := s.Helpers[0].Submit; h.Image != "db:7" || h.ShmSize != 1<<30 || len(s.Warnings) > 0 {
		t.Errorf("%+v, warned of %q", h, s.Warnings)
	}
}
