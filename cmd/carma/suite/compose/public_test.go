package compose

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// devices reserves GPUs as most public files do.
func devices(which string) string {
	return "deploy: {resources: {reservations: {devices: [{driver: nvidia, " + which + "}]}}}"
}

// TestPublicFiles: Compose files as public projects ship them are accepted for any user.
// The files here are rewritten with the same keys. Each row says which services are tasks
// with how many GPUs, which are helpers, and which keys give a warning that they do
// nothing.
func TestPublicFiles(t *testing.T) {
	all, one := devices("count: all, capabilities: [gpu]"), devices("count: 1, capabilities: [gpu]")
	for name, row := range map[string]struct {
		file           string
		tasks, helpers string
		told           string // the keys of the warnings
		profile        string
	}{
		"LLaMA-Factory": {
			file:  "services: {llamafactory: {build: {dockerfile: ./docker/Dockerfile, context: ../..}, container_name: box, ports: ['7860:7860', '8000:8000'], ipc: host, tty: true, stdin_open: true, command: bash, restart: unless-stopped, " + devices(`count: "all", capabilities: [ gpu ]`) + "}}",
			tasks: "llamafactory all", told: "container_name ipc tty stdin_open restart",
		},
		"InvokeAI": {
			file: `version: '3.8'
x-app: &app
  image: local/app
  environment: ["ROOT=${APP_ROOT:-/app}", HF_HOME]
  ports: ["${APP_PORT:-9090}:${APP_PORT:-9090}"]
  volumes: [{type: bind, source: "${HOST_ROOT:-~/app}", target: /app, bind: {create_host_path: true}}, "${HF_HOME:-~/.cache/huggingface}:/hf"]
  tty: true
services:
  app-nvidia:
    <<: *app
    ` + one + `
  app-cpu: {<<: *app, profiles: [cpu]}
  app-rocm: {<<: *app, devices: ["/dev/kfd:/dev/kfd"], profiles: [rocm]}
`,
			tasks: "app-nvidia 1", told: "version tty",
		},
		"GPT-SoVITS": {
			file:  "services: {voice: {image: i, container_name: box, environment: [is_half=False], volumes: ['./output:/workspace/output', './logs:/workspace/logs'], working_dir: /workspace, ports: ['9880:9880', '9871:9871'], shm_size: 16G, stdin_open: true, tty: true, restart: unless-stopped, " + devices(`count: "all", capabilities: [gpu]`) + "}}",
			tasks: "voice all", told: "container_name stdin_open tty restart",
		},
		"whisper-asr-webservice": {
			file:  "services: {asr: {build: {context: ., dockerfile: Dockerfile.gpu}, environment: [ASR_MODEL=base], ports: ['9000:9000'], volumes: ['./app:/app/app', 'cache:/root/.cache'], " + one + "}}\nvolumes:\n  cache:\n",
			tasks: "asr 1",
		},
		"Whisper-WebUI": {
			file:  "services: {app: {build: ., image: i, volumes: ['./models:/models'], ports: ['7860:7860'], stdin_open: true, tty: true, entrypoint: [python, app.py, --server_port, '7860',], " + all + "}}",
			tasks: "app all", told: "stdin_open tty",
		},
		"RVC": {
			file:  "version: '3.8'\nservices: {rvc: {build: {context: ., dockerfile: Dockerfile}, container_name: rvc, volumes: ['./weights:/w'], ports: ['7865:7865'], " + one + "}}",
			tasks: "rvc 1", told: "version container_name",
		},
		"Kokoro-FastAPI": {
			file:  "name: kokoro\nservices: {tts: {build: {context: ../.., dockerfile: docker/gpu/Dockerfile}, volumes: ['../../api:/app/api'], user: '1001:1001', ports: ['8880:8880'], environment: [USE_GPU=true], " + all + "}}",
			tasks: "tts all", told: "user",
		},
		"FastChat": {
			file: `version: "3.9"
services:
  controller: {build: {context: ., dockerfile: Dockerfile}, image: 'chat:latest', ports: ["21001:21001"], entrypoint: [python3, -m, controller]}
  worker: {build: {context: ., dockerfile: Dockerfile}, image: 'chat:latest', volumes: ['hf:/root/.cache'], restart: "on-failure:5", entrypoint: [python3, -m, worker, --model, "${MODEL:-m}"], ` + one + `}
  api: {build: {context: ., dockerfile: Dockerfile}, image: 'chat:latest', ports: ["8000:8000"], entrypoint: [python3, -m, api]}
volumes: {hf: }
`,
			tasks: "worker 1", helpers: "controller api", told: "version",
		},
		"fish-speech": {
			file:    "services: {webui: {build: {context: ., target: webui}, environment: {COMPILE: '${COMPILE:-0}'}, profiles: [webui], ports: ['7860:7860'], tty: true, " + all + "}, server: {image: i, profiles: [server], " + all + "}}",
			profile: "webui", tasks: "webui all", told: "tty",
		},
		"openedai-speech": {
			file:  "services: {server: {build: {context: ., dockerfile: Dockerfile}, stdin_open: true, tty: true, runtime: nvidia, ports: ['8000:8000'], volumes: ['.:/app/'], " + all + "}}",
			tasks: "server all", told: "stdin_open tty",
		},
		"WebODM": {
			file: `version: '2.1'
services:
  db: {image: db, container_name: db, expose: ["5432"], volumes: ["${DB_DIR:-dbdata}:/data:Z"], restart: unless-stopped, oom_score_adj: -100}
  webapp: {image: web, entrypoint: '/bin/bash -c "chmod +x /w/*.sh && /bin/bash -c \"/w/start.sh\""', ports: ["8000:8000"], depends_on: [db, node-odm-1], restart: unless-stopped}
  node-odm-1: {image: 'nodeodm:gpu', container_name: node, expose: ["3000"], restart: unless-stopped, oom_score_adj: 500, ` + one + `}
volumes: {dbdata: }
`,
			tasks: "node-odm-1 1", helpers: "db webapp", told: "version oom_score_adj depends_on container_name expose restart oom_score_adj",
		},
		"kohya_ss": {
			file: `services:
  gui: {image: i, container_name: box, user: '1000:0', build: {context: ., args: [UID=1000], cache_from: [x]}, ports: ['7860:7860'], tmpfs: [/tmp], volumes: ['./dataset:/dataset'], ` + devices(`capabilities: [gpu], device_ids: ["all"]`) + `}
  tensorboard: {image: 'tensorflow/tensorflow:latest-gpu', ports: ['6006:6006'], volumes: ['logs:/app/logs'], command: tensorboard --logdir=/app/logs --bind_all, ` + devices(`capabilities: [gpu], device_ids: ["all"]`) + `}
volumes: {logs: }
`,
			tasks: "gui all", helpers: "tensorboard", told: "container_name user build.cache_from deploy.resources.reservations.devices",
		},
		"Fooocus": {
			file:  "services: {app: {build: ., image: i, ports: ['7865:7865'], environment: [DATADIR=/d], volumes: ['data:/d'], tty: true, " + devices("device_ids: ['0'], capabilities: [compute, utility]") + "}}\nvolumes: {data: }\n",
			tasks: "app 1", told: "tty deploy.resources.reservations.devices.device_ids",
		},
		"SGLang with ports": {
			file:  "services: {sglang: {image: lmsysorg/sglang:latest, container_name: box, volumes: ['${HOME}/.cache/huggingface:/hf'], restart: always, ports: ['30000:30000'], entrypoint: python3 -m sglang.launch_server, command: --model-path m --host 0.0.0.0, ulimits: {memlock: -1, stack: 67108864}, ipc: host, healthcheck: {test: [CMD-SHELL, curl -f http://localhost:30000/health || exit 1]}, " + devices("device_ids: ['0'], capabilities: [gpu]") + "}}",
			tasks: "sglang 1", told: "container_name restart ipc healthcheck deploy.resources.reservations.devices.device_ids",
		},
		"NVIDIA's RAG blueprint": {
			file: `services:
  llm: {image: i, user: "${USERID}", shm_size: 16GB, ports: ["8999:8000"], expose: ["8000"], ulimits: {nofile: {soft: 65536, hard: 65536}}, profiles: ["", rag], ` + devices(`device_ids: ['${LLM_GPU:-1}'], capabilities: [gpu]`) + `}
  elements: {image: i, user: root, environment: [CUDA_VISIBLE_DEVICES=0], profiles: ["", ingest], ` + devices(`device_ids: ['${GPU:-0}'], capabilities: [gpu]`) + `}
  paddle: {image: i, profiles: [paddle], ` + all + `}
networks: {default: {name: rag}}
`,
			tasks: "llm 1, elements 1", told: "user expose deploy.resources.reservations.devices.device_ids user environment deploy.resources.reservations.devices.device_ids",
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := Options{Folder: filepath.Join(t.TempDir(), "a", "b"), UID: 1002, GID: 1002, Environ: []string{"HOME=/home/ann", "USERID=1000"}}
			if row.profile != "" {
				o.Profiles = []string{row.profile}
			}
			s, err := Load(t.Context(), "f.yaml", []byte(row.file), o)
			if err != nil {
				t.Fatal(err)
			}
			var tasks, helpers, told []string
			for _, v := range s.Services {
				gpus := fmt.Sprint(v.Submit.GPUs)
				if v.AllGPUs {
					gpus = "all"
				}
				tasks = append(tasks, v.Name+" "+gpus)
				if v.Submit.User != "" {
					t.Errorf("%s is to run as %s", v.Name, v.Submit.User)
				}
			}
			for _, h := range s.Helpers {
				helpers = append(helpers, h.Name)
			}
			for _, w := range s.Warnings {
				key, _, _ := strings.Cut(strings.TrimSpace(w[strings.Index(w, " "):]), ": ")
				if parts := strings.SplitN(key, ".", 3); len(parts) == 3 {
					key = parts[2]
				}
				told = append(told, key)
			}
			want := strings.Fields(row.told)
			slices.Sort(told)
			slices.Sort(want)
			slices.Sort(helpers)
			wantHelpers := strings.Fields(row.helpers)
			slices.Sort(wantHelpers)
			if got := strings.Join(tasks, ", "); got != row.tasks || !slices.Equal(helpers, wantHelpers) || !slices.Equal(told, want) {
				t.Errorf("tasks %q, helpers %q, told of %q\nwant %q, %q, %q\n%s", got, helpers, told, row.tasks, wantHelpers, want, strings.Join(s.Warnings, "\n"))
			}
		})
	}
}
