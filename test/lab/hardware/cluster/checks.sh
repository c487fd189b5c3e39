# The checks of test/lab/hardware/kubernetes.sh. Sourced. Letters are those of the page in
# docs/hardware.

gib=$((1 << 30))

# submit NAME MEMORY WORDS...: a task in the background; its program is hold.
submit() {
	local name=$1 mem=$2
	shift 2
	carma run -d --name "$name" --mem "$mem" --pull never ${stand_in:+-v "$work/card:/card"} $image hold "$@" >>"$work/log/submit.log" 2>&1
}

# of NAME TEMPLATE: of a task.
of() { carma inspect -f "$2" "$1"; }
phase() { [ "$(of "$1" '{{.Phase}}')" = "$2" ]; }
# attempts NAME: what each attempt was, in a line.
attempts() { of "$1" '{{.Name}} {{.Phase}}:{{range .Attempts}} {{.N}} {{.Outcome}} grant {{.Grant}} peak {{.Peak}} {{if not .Started.IsZero}}running {{.Started.Sub .Launched}} after the decision{{end}} {{.Message}} {{.Reason}};{{end}}'; }
count() { of "$1" '{{len .Attempts}}'; }
grant() { of "$1" '{{range .Attempts}}{{.Grant}} {{end}}' | awk -v n="$2" '{ print $n }'; }
# measured NAME: the most that the daemon has seen the task use, in bytes.
measured() { of "$1" '{{range .Attempts}}{{range .Curve}}{{.Used}} {{end}}{{end}}' | tr ' ' '\n' | sort -n | tail -1; }
outcome() { [ "$(of "$1" '{{range .Attempts}}{{if not .Outcome}}-{{end}}{{.Outcome}} {{end}}' | awk -v n="$2" '{ print $n }')" = "$3" ]; }

# pod NAME: of its last attempt. uid of it, and its processes on the machine.
pod() { of "$1" '{{range .Attempts}}{{.Container}} {{end}}' | awk '{ print $NF }'; }
pod_json() { api GET "/api/v1/namespaces/$namespace/pods/$(pod "$1")"; }
pod_uid() { pod_json "$1" | tr -d ' \n' | grep -o '"uid":"[^"]*","resourceVersion' | head -1 | cut -d'"' -f4; }
claim() { api GET "/apis/resource.k8s.io/v1/namespaces/$namespace/resourceclaims/$1" | tr -d ' \n'; }
claimed() { claim "$1" | grep -o '"consumedCapacity":{"memory":"[^"]*"' | cut -d'"' -f6; }
# pids NAME: of hold in that pod, by the control group.
pids() {
	local id pid
	id=$(pod_uid "$1")
	for pid in $(holders); do
		grep -qs "pod$id" "/proc/$pid/cgroup" && echo "$pid"
	done
}
# reported NAME: bytes that the agent tells of the task's last attempt.
reported() { lease | grep -o "\"t\":$(of "$1" '{{.ID}}'),\"a\":$(count "$1"),\"u\":[0-9]*" | sed 's/.*://'; }
uses() { [ "$(reported "$1")" -ge "$2" ]; }

run_checks() {
	check 'b: two tasks of 20 and 30 GiB run' two_run || return # without pods nothing else tells more
	check 'b: both have claims on the one card' two_claims
	check 'b: the agent names both by their control groups' two_reported
	check 'b: carma shows their measured memory' two_shown
	check 'd: a task of 2 GiB holds 6' over_use
	check 'f: why, logs, exec' look
	check 'c: a task of 4 GiB wants three quarters of the card and runs out of memory' out_of_memory
	check 'c: it waits for room' waits
	check "e: kill -9 of the daemon, the agent and NVIDIA's driver" kills
	check 'e: a new task runs after that' after_kills
	check 'f: stop' stops
	check 'c: with room it runs with a larger claim' comes_again
	check 'g: an annotated Job' job
	check 'a training with PyTorch in a pod' training
	check 'nothing is left' nothing_left
}

both() { phase large running && phase small running; }
two_run() {
	submit small 20G --mib 18432 --step 4096 --seconds 400 --busy && submit large 30G --mib 28672 --step 4096 --seconds 400 || { seen=$(tail -n 2 "$work/log/submit.log") && return 1; }
	within 40 both || { seen="$(attempts small) $(attempts large) $(carma why small | head -n 5)" && return 1; }
	seen="$(attempts small) $(attempts large)"
}

two_claims() {
	local name one all=''
	for name in small large; do
		one=$(claim "$(pod "$name")")
		all="$all $name: $(claimed "$(pod "$name")"), device $(echo "$one" | grep -o '"device":"[^"]*"' | head -1 | cut -d'"' -f4), share $(echo "$one" | grep -o '"shareID":"[^"]*"' | head -1 | cut -d'"' -f4);"
		echo "$one" >>"$out/claims.json"
	done
	seen=$all
	cat "$state"/cdi/*.yaml >"$out/cdi.yaml" 2>/dev/null || cat "$state"/cdi/* >"$out/cdi.yaml"
	case $(claimed "$(pod small)")$(claimed "$(pod large)") in 20Gi30Gi | *[0-9]*[0-9]*) ;; *) return 1 ;; esac
}

two_reported() {
	within 20 uses small $((18 * gib)) && within 20 uses large $((28 * gib))
	local ok=$?
	seen="small (process $(pids small | tr '\n' ' ')): $(reported small), large ($(pids large | tr '\n' ' ')): $(reported large); $(lease | cut -c1-300)"
	[ -n "$stand_in" ] || LD_LIBRARY_PATH=$work/driver/usr/lib/x86_64-linux-gnu "$work/driver/usr/bin/nvidia-smi" --query-compute-apps=pid,used_memory --format=csv >>"$out/facts.txt" 2>&1
	lease >>"$out/facts.txt"
	return $ok
}

two_shown() {
	{ carma ps && carma gpus; } >>"$out/facts.txt" 2>&1
	within 10 shown
	local ok=$?
	seen="$(carma gpus | tr -s ' ' | tr '\n' ';') most seen: small $(measured small), large $(measured large)"
	return $ok
}
shown() { [ "$(measured small)" -ge $((18 * gib)) ] && [ "$(measured large)" -ge $((28 * gib)) ]; }

over_use() {
	submit over 2G --mib 6144 --step 512 --seconds 300 || return 1
	within 40 booked_more
	local ok=$?
	seen="$(attempts over) claim $(claimed "$(pod over)"); $(carma why over 2>&1 | head -n 4)"
	carma stop over >/dev/null 2>&1
	within 20 phase over cancelled || within 1 phase over failed
	return $ok
}
booked_more() { phase over running && [ "$(grant over 1)" -ge $((6 * gib)) ]; }

look() {
	local smi groups
	carma why small >>"$out/facts.txt" 2>&1 || { seen='why failed' && return 1; }
	smi=$(timeout 20 carma exec small nvidia-smi 2>&1 </dev/null | tee -a "$out/facts.txt" | grep -m1 -o 'NVIDIA-SMI.*' | tr -s ' ')
	groups=$(timeout 20 carma exec small cat /proc/1/cgroup 2>&1 </dev/null | head -1)
	seen="logs: $(carma logs small | tail -n 1); exec nvidia-smi: $smi; group $groups"
	[ "$(carma logs small | grep -c 'MiB held')" -gt 0 ] && [ -n "$smi" ]
}

# card_mib is the memory that NVIDIA's driver offers.
card_mib() {
	local mib
	mib=$(slices | grep -o '"value": *"[0-9]*Mi"' | head -1 | tr -dc 0-9)
	echo "${mib:-81559}"
}
out_of_memory() {
	submit hungry 4G --mib $(($(card_mib) * 3 / 4)) --seconds 8 || return 1
	within 40 outcome hungry 1 gpu-oom
	local ok=$?
	seen=$(attempts hungry)
	return $ok
}
waits() {
	within 10 phase hungry recovering
	seen="$(of hungry '{{.Phase}}'); $(carma why hungry | head -n 6)"
	phase hungry recovering && [ "$(count hungry)" = 1 ]
}

kills() {
	local uids processes now
	uids="$(pod_uid small) $(pod_uid large)"
	processes="$(pids small) $(pids large)"
	kill -9 "$daemon" "$agent" "$plugin"
	sleep 1
	plugin_up || return 1
	agent_up || return 1
	daemon_up || return 1
	within 20 both
	now="$(pod_uid small) $(pod_uid large)"
	seen="pods before $uids, after $now; processes before $processes, after $(pids small) $(pids large); $(attempts small) $(attempts large)"
	[ "$uids" = "$now" ] && [ "$processes" = "$(pids small) $(pids large)" ] && [ "$(count small)$(count large)" = 11 ] && both
}

after_kills() {
	submit later 2G --mib 512 --seconds 2 || return 1
	within 30 phase later succeeded
	local ok=$?
	seen=$(attempts later)
	within 10 uses small $((18 * gib)) || ok=1
	return $ok
}

stops() {
	local from
	from=$(date +%s%N)
	carma stop large >/dev/null 2>&1
	within 25 phase large cancelled || within 1 phase large failed
	local ok=$?
	carma stop small >/dev/null 2>&1
	seen="large ended after $(took "$from") s; $(attempts large)"
	return $ok
}

comes_again() {
	within 50 phase hungry succeeded
	local ok=$?
	seen=$(attempts hungry)
	[ $ok = 0 ] && [ "$(grant hungry 2)" -ge $(($(card_mib) * 3 / 4 << 20)) ]
}

job() {
	local jobs=/apis/batch/v1/namespaces/$namespace/jobs
	api POST $jobs '{"metadata":{"name":"plain-job","annotations":{"carma.dev/memory":"4Gi"}},"spec":{"template":{"spec":{"restartPolicy":"Never",
		"containers":[{"name":"train","image":"'$image'","imagePullPolicy":"Never","command":["hold","--mib","2048","--seconds","3"]}]}}}}' >"$work/job.json" || return 1
	within 40 complete
	local ok=$?
	seen=$(attempts $namespace/plain-job)
	api DELETE "$jobs/plain-job?propagationPolicy=Background" >/dev/null
	return $ok
}
complete() { api GET "/apis/batch/v1/namespaces/$namespace/jobs/plain-job" | tr -d ' \n' | grep -q '"type":"Complete","status":"True"'; }

training() {
	local folder mounts=()
	[ -n "$torch_python" ] || { seen='no Python with PyTorch at $torch here' && return 1; }
	for folder in $torch_mounts; do mounts+=(-v "$folder:$folder:ro"); done
	carma run -d --name training --mem 6G --pull never "${mounts[@]}" -e HOME=/tmp $image "$torch_python" -c '
import torch, time
on = "cuda" if torch.cuda.is_available() else "cpu"
net = torch.nn.Sequential(*[torch.nn.Linear(4096, 4096) for _ in range(8 if on == "cuda" else 1)]).to(on)
best = torch.optim.Adam(net.parameters())
begin, step = time.time(), 0
while time.time() - begin < 6:
    x = torch.randn(512, 4096, device=on)
    loss = (net(x) - x).square().mean()
    best.zero_grad(); loss.backward(); best.step(); step += 1
    if step % 50 == 1: print("step", step, "loss", round(loss.item(), 4), flush=True)
if on == "cuda": print("done", torch.cuda.get_device_name(0), torch.cuda.max_memory_reserved() >> 20, "MiB reserved")
else: raise SystemExit("done without a GPU")' >>"$work/log/submit.log" 2>&1 || { seen=$(tail -n 2 "$work/log/submit.log") && return 1; }
	within 60 ended training
	local ok=$?
	seen="$(attempts training) $(carma logs training | tail -n 2)"
	[ $ok = 0 ] || carma stop training >/dev/null 2>&1
	phase training succeeded
}
ended() { phase "$1" succeeded || phase "$1" failed; }

names() { api GET "$1" | tr -d ' \n' | grep -o '"metadata":{"name":"[^"]*"' | cut -d'"' -f6; }
empty() { [ -z "$(names "/api/v1/namespaces/$namespace/pods")$(names "/apis/resource.k8s.io/v1/namespaces/$namespace/resourceclaims")" ]; }
nothing_left() {
	carma stop --all >/dev/null 2>&1
	within 20 empty
	local ok=$?
	seen="pods: $(names "/api/v1/namespaces/$namespace/pods") claims: $(names "/apis/resource.k8s.io/v1/namespaces/$namespace/resourceclaims") CDI files: $(ls "$state/cdi" | wc -l)"
	return $ok
}
