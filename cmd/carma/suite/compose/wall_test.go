package compose

import (
	"strings"
	"testing"
)

// TestWalls checks that settings that would give a helper access outside its container are
// refused, with the line and the reason. Harmless settings with similar names are accepted.
func TestWalls(t *testing.T) {
	const base = "services:\n  db:\n    image: db\n"
	for name, tc := range map[string]struct{ text, want string }{
		"privileged":         {base + "    privileged: true\n", "f.yaml:4: services.db.privileged: tasks get no extra privileges"},
		"not privileged":     {base + "    privileged: false\n", ""},
		"capability":         {base + "    cap_add: [NET_ADMIN]\n", "f.yaml:4: services.db.cap_add: NET_ADMIN reaches out of the container; these can be had: CHOWN"},
		"all capabilities":   {base + "    cap_add: [ALL]\n", "f.yaml:4: services.db.cap_add: ALL reaches out of the container"},
		"harmless":           {base + "    cap_add: [CAP_CHOWN, ipc_lock]\n    cap_drop: [ALL]\n", ""},
		"socket":             {base + "    volumes: [/var/run/docker.sock:/var/run/docker.sock:ro]\n", "f.yaml:4: services.db.volumes: /var/run/docker.sock is the engine's socket; whoever has it is root"},
		"host network":       {base + "    network_mode: host\n", "f.yaml:4: services.db.network_mode: the host's network is shared"},
		"other's network":    {base + "    network_mode: \"service:web\"\n  web: {image: i}\n", ""},
		"outside's network":  {base + "    network_mode: \"container:web\"\n", "f.yaml:4: services.db.network_mode: containers outside the suite are not reached; write network_mode: service:NAME"},
		"task's network":     {base + "    network_mode: \"service:web\"\n  web: {image: i, gpus: all}\n", "f.yaml:4: services.db.network_mode: web is a task, which has its network only while it runs; reach it by its name, http://web:PORT"},
		"network of a task":  {base + "  web: {image: i, gpus: all, network_mode: \"service:db\"}\n", "f.yaml:4: services.web.network_mode: a task starts when it is its turn, and db may have started again by then; leave network_mode out and reach it by its name, for example http://db:8000"},
		"several networks":   {base + "    network_mode: \"service:web\"\n  web: {image: i, scale: 2}\n", "f.yaml:4: services.db.network_mode: web has 2 containers; reach them by its name"},
		"network's network":  {base + "    network_mode: \"service:web\"\n  web: {image: i, network_mode: \"service:x\"}\n  x: {image: i}\n", "f.yaml:4: services.db.network_mode: web has no network of its own; write network_mode: service:x"},
		"ports elsewhere":    {base + "    ports: [\"80\"]\n    network_mode: \"service:web\"\n  web: {image: i}\n", "f.yaml:4: services.db.ports: it shares the network of web; write ports there"},
		"no network":         {base + "    network_mode: none\n", ""},
		"engine's network":   {base + "    network_mode: bridge\n", ""},
		"processes":          {base + "    pid: host\n", "f.yaml:4: services.db.pid: tasks get no extra privileges"},
		"its own ipc":        {base + "    ipc: host\n", ""},
		"ipc":                {base + "    ipc: container:x\n", "f.yaml:4: services.db.ipc: a helper has its own; for a larger /dev/shm write shm_size"},
		"users":              {base + "    userns_mode: host\n", "f.yaml:4: services.db.userns_mode: "},
		"seccomp stays":      {base + "    security_opt: [seccomp=unconfined]\n", ""},
		"security":           {base + "    security_opt: [systempaths=unconfined]\n", "f.yaml:4: services.db.security_opt: systempaths:unconfined takes a wall down"},
		"labels":             {base + "    security_opt: [\"label:disable\", \"no-new-privileges:true\"]\n", ""},
		"device":             {base + "    devices: [/dev/kvm]\n", "f.yaml:4: services.db.devices: "},
		"volume's options":   {base + "    volumes: [data:/d]\nvolumes:\n  data:\n    driver_opts: {type: nfs, o: addr=10.0.0.1, device: \":/x\"}\n", "f.yaml:6: volumes.data.driver_opts: with options a volume can be any folder"},
		"volume of a folder": {base + "    volumes: [data:/d]\nvolumes:\n  data:\n    driver_opts: {type: none, o: bind, device: /var/run/docker.sock}\n", "f.yaml:4: services.db.volumes: /var/run/docker.sock is the engine's socket"},
		"volume's driver":    {base + "    volumes: [data:/d]\nvolumes:\n  data:\n    driver: rexray\n", "f.yaml:6: volumes.data.driver: rexray is another driver"},
		"unused volume":      {base + "volumes:\n  data:\n    driver: rexray\n", ""},
		"macvlan":            {base + "    networks: [n]\nnetworks:\n  n:\n    driver: macvlan\n", "f.yaml:6: networks.n.driver: macvlan reaches the machine's own network"},
		"address":            {base + "    networks: {n: {ipv4_address: 10.0.0.2}}\nnetworks:\n  n: {ipam: {config: [{subnet: 10.0.0.0/24}]}}\n", "f.yaml:4: services.db.networks.n.ipv4_address: addresses are the engine's to choose"},
		"secret store":       {base + "    secrets: [s]\nsecrets:\n  s: {external: true}\n", "f.yaml:4: services.db.secrets.s: carma keeps no store of secrets"},
		"no secret":          {base + "    secrets: [s]\nsecrets:\n  s: {environment: NOT_SET}\n", "f.yaml:4: services.db.secrets.s: the variable NOT_SET is not set"},
		"hook":               {base + "    post_start: [{command: x}]\n", "f.yaml:4: services.db.post_start: "},
		"runtime":            {base + "    runtime: sysbox\n", "f.yaml:4: services.db.runtime: a helper runs in the engine's ordinary runtime"},
		"two kinds":          {base + "    x-carma: {task: true, helper: true}\n", "f.yaml:4: services.db.x-carma.helper: write task: true or helper: true"},
		"no kind":            {base + "    x-carma: {task: maybe}\n", "f.yaml:4: services.db.x-carma.task: write task: true or helper: true"},
		"task's settings":    {base + "    x-carma: {helper: true, est-model: resnet50}\n", "f.yaml:4: services.db.x-carma.est-model: unknown key; nearest: "},
		"sctp":               {base + "    ports: [\"1:1/sctp\"]\n", "f.yaml:4: services.db.ports: sctp is not published"},
		"too many":           {base + "    scale: 65\n", "f.yaml:4: services.db.scale: 65 replicas; a helper can have from 0 to 64"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Load(t.Context(), "f.yaml", []byte(tc.text), Options{Folder: "/nonexistent/suite", UID: 1000, GID: 1000})
			if tc.want == "" {
				if err != nil || len(s.Helpers) == 0 {
					t.Errorf("refused: %v", err)
				}
				return
			}
			if err == nil || !strings.HasPrefix(err.Error(), tc.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v\nwant %s", err, tc.want)
			}
		})
	}
}

// TestUnsetVariables checks that a variable that is not set is empty, as in Compose. It causes
// one warning, with its line. ${NAME:?text} is still an error.
func TestUnsetVariables(t *testing.T) {
	s, err := Load(t.Context(), "f.yaml", []byte("services:\n  a:\n    image: i\n    command: --lr ${LR} --of ${LR}${WD-1}\n"), Options{Folder: "/nonexistent/suite"})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(s.Helpers[0].Submit.Command, " "); got != "--lr --of 1" {
		t.Errorf("command %q", got)
	}
	want := "f.yaml:4: services.a.command: the variable LR is not set, so it is empty; set it, put it into .env, or write ${LR:-DEFAULT}"
	if len(s.Warnings) != 1 || s.Warnings[0] != want {
		t.Errorf("warned of %q", s.Warnings)
	}
}

// TestRootIsNotWalledIn checks that root's helpers get all requested mounts and run as the
// requested user.
func TestRootIsNotWalledIn(t *testing.T) {
	s, err := Load(t.Context(), "f.yaml", []byte("services:\n  a:\n    image: i\n    user: \"7\"\n    ports: [\"80:80\"]\n    volumes: [/etc:/data:ro]\n"), Options{Folder: "/nonexistent/suite"})
	if err != nil {
		t.Fatal(err)
	}
	h := s.Around().Helpers[0]
	if h.Container.User != "7" || len(h.Container.Mounts) != 1 || h.Ports[0].Host != 80 || len(s.Warnings) > 0 {
		t.Errorf("%+v, warned of %q", h, s.Warnings)
	}
}
