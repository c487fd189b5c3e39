# The parts of test/lab/hardware/kubernetes.sh: what is started, and how it ends. Sourced.

table=$out/kubernetes.md
plugin='' agent='' daemon='' guard='' shower=''
seen=''

say() { echo "$*" | tee -a "$out/facts.txt"; }

took() { # NANOSECONDS: since then, in seconds
	local hundredths=$((($(date +%s%N) - $1) / 10000000))
	printf '%d.%02d' $((hundredths / 100)) $((hundredths % 100))
}

# left is how many seconds may still be used.
left() { echo $((limit - ($(date +%s%N) - began) / 1000000000)); }

# check NAME COMMAND...: a row of the table. The command may say in $seen what it saw.
check() {
	local name=$1 from result=PASS
	shift
	from=$(date +%s%N)
	[ "$name" != unpacked ] || from=$began
	seen=''
	if [ "$(left)" -le 0 ]; then
		result='NOT RUN' seen='no time was left'
	else
		"$@" 2>>"$work/log/checks.log" || result=FAIL
	fi
	seen=$(printf '%s' "$seen" | tr '\n|' ' /' | cut -c1-600)
	echo "| $name | $result | $(took "$from") | $seen |" | tee -a "$table"
	[ "$result" = PASS ]
}

# within SECONDS COMMAND...: waits for a command to succeed, at most so long.
within() {
	local most=$1 end
	shift
	[ "$most" -le "$(left)" ] || most=$(left)
	end=$((SECONDS + most))
	until "$@" >/dev/null 2>&1; do
		[ $SECONDS -lt $end ] || return 1
		sleep 0.2
	done
}

# holders are the processes of hold.
holders() { grep -lxs hold /proc/[0-9]*/comm | cut -d/ -f3; }

# closure FILES: the libraries that programs and libraries need, with the loader.
closure() { ldd "$@" 2>/dev/null | grep -o '/[^ ():]*\.so[^ ():]*' | sort -u; }

# driver_root: a folder with the driver as NVIDIA's DRA driver looks for it: libraries with
# the version in their names, in /usr/lib/x86_64-linux-gnu, and nvidia-smi in /usr/bin.
driver_root() {
	local from lib name version wake to=$work/driver/usr/lib/x86_64-linux-gnu
	mkdir -p "$to" "$work/driver/usr/bin"
	if [ -n "$stand_in" ]; then
		from=$bin/stand-in version=580.159.04
		mkdir -p "$work/driver/dev" "$work/card"
		for name in nvidia0 nvidiactl nvidia-uvm nvidia-uvm-tools; do
			mknod -m 666 "$work/driver/dev/$name" c 1 3
		done
		printf '#!/bin/sh\necho "NVIDIA-SMI stand-in $(cat /proc/self/comm)"\n' >"$work/driver/usr/bin/nvidia-smi"
		export THIN_GPU=$work/thin
		: >"$THIN_GPU"
		show_stand_in &
		shower=$!
	else
		from=$(driver_folder) || { seen='no libcuda.so.1 on this machine' && return 1; }
		version=$(grep -oE '[0-9]{3}\.[0-9]+(\.[0-9]+)?' /proc/driver/nvidia/version /sys/module/nvidia/version 2>/dev/null | head -1 | sed 's/.*://')
		for name in nvidia-smi nvidia-debugdump; do
			lib=$(command -v $name || ls /usr/local/nvidia/bin/$name 2>/dev/null) && cp -L "$lib" "$work/driver/usr/bin/"
		done
	fi
	for lib in "$from"/libcuda.so.1 "$from"/libnvidia-ml.so.1 "$from"/libnvidia-ptxjitcompiler.so.1 "$from"/libnvidia-nvvm.so.4 "$from"/libnvidia-gpucomp.so.* "$from"/libcudadebugger.so.1; do
		[ -e "$lib" ] || continue
		name=$(basename "$lib")
		cp -L "$lib" "$to/${name%%.so*}.so.$version"
		[ "$name" = "${name%%.so*}.so.$version" ] || ln -sf "${name%%.so*}.so.$version" "$to/$name"
	done
	# NVIDIA's driver does not start without it.
	[ -e "$work/driver/usr/bin/nvidia-smi" ] || printf '#!/bin/sh\necho "this machine has no nvidia-smi"\n' >"$work/driver/usr/bin/nvidia-smi"
	chmod 755 "$work"/driver/usr/bin/*
	# The first CUDA process makes device nodes that may be missing.
	wake=$(LD_LIBRARY_PATH=$to timeout 60 "$bin/hold" --mib 16 --seconds 1 2>&1 | head -1)
	seen="on the machine itself: $wake; $(ls /dev/nvidia* 2>/dev/null | tr '\n' ' '); version $version from $from: $(ls "$to" | tr '\n' ' ')"
	[ -n "$version" ] && [ -e "$to/libnvidia-ml.so.1" ]
}

# show_stand_in tells the stand-in of the driver's library which process holds how much.
show_stand_in() {
	local pid who mib lines live
	while sleep 0.2; do
		lines='' live=' '
		for pid in $(holders); do
			who=$(tr '\0' '\n' <"/proc/$pid/environ" 2>/dev/null | sed -n 's/^CARMA_TASK=//p;s/^CARMA_ATTEMPT=/-/p' | sort -r | tr -d '\n')
			live="$live$who "
			mib=$(cat "$work/card/$who" 2>/dev/null) && lines="${lines}process $pid $mib
"
		done
		printf '%s' "$lines" >"$THIN_GPU.new" && mv "$THIN_GPU.new" "$THIN_GPU"
		for who in $(find "$work/card" -type f ! -newermt '-1 second' -printf '%f\n'); do
			case $live in *" $who "*) ;; *) rm -f "$work/card/$who" ;; esac
		done
	done 2>/dev/null
}

cluster_up() {
	"$here/up.sh" >"$work/config" 2>"$work/log/up.log" || { seen=$(tail -n 3 "$work/log/up.log") && return 1; }
	config=$(cat "$work/config")
	seen=$(grep -o 'the control plane was.*\|the node was.*' "$work/log/up.log" | tr '\n' ';')
	api POST /api/v1/namespaces "{\"metadata\":{\"name\":\"$namespace\"}}" >/dev/null
	# As NVIDIA's chart has it.
	api POST /apis/resource.k8s.io/v1/deviceclasses '{"apiVersion":"resource.k8s.io/v1","kind":"DeviceClass","metadata":{"name":"gpu.nvidia.com"},
		"spec":{"extendedResourceName":"nvidia.com/gpu","selectors":[{"cel":{"expression":"device.driver == '"'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'gpu'"'"}}]}}' >/dev/null || return 1
	apply "$root/configs/kubernetes/components/jobs/policy.yaml"
}

# make_image: the task's program, a shell, and of this machine's libraries what they need,
# and what its Python needs that is not in the Python's own folder.
make_image() {
	local tree=$work/tree file
	mkdir -p "$tree"/{bin,etc,tmp,dev,proc,sys,sbin,usr/lib/x86_64-linux-gnu}
	cp "$bin/hold" "$tree/bin/"
	cp -L /bin/sh /bin/cat /bin/ls "$tree/bin/"
	torch_parts
	for file in $(closure "$bin/hold" /bin/sh /bin/ls $torch_files) $torch_extra; do
		case $file in "$torch"/*) continue ;; esac
		mkdir -p "$tree$(dirname "$file")"
		cp -L "$file" "$tree$file" 2>/dev/null
	done
	echo 'root:x:0:0::/:/bin/sh' >"$tree/etc/passwd"
	chmod 1777 "$tree/tmp"
	image "$work/hold.tar" $image "$tree" && import "$work/hold.tar" >/dev/null
	seen="$(du -sm "$tree" | cut -f1) MiB; Python: ${torch_python:-none with PyTorch}"
}

# torch_parts finds a Python with PyTorch, and what of it an image has to have: its own
# folder is mounted, the machine's libraries are copied.
torch_parts() {
	local libs link
	torch_python='' torch_files='' torch_extra='' torch_mounts=''
	[ -x "$torch/.venv/bin/python3" ] || return 0
	torch_python=$torch/.venv/bin/python3
	libs=$($torch_python -c 'import sysconfig; print(sysconfig.get_path("stdlib"))') || { torch_python='' && return 0; }
	link=$torch_python
	while [ -L "$link" ]; do # each name on the way to the program
		case $(readlink "$link") in
		/*) link=$(readlink "$link") ;;
		*) link=$(dirname "$link")/$(readlink "$link") ;;
		esac
		torch_extra="$torch_extra $link"
	done
	torch_files="$(readlink -f $torch_python) $(ls "$libs"/lib-dynload/*.so) $(find "$torch" -maxdepth 8 -path '*site-packages/torch/*' -name '*.so' | head -40)"
	torch_mounts="$torch $libs"
}

plugin_up() {
	[ -n "$plugin" ] || : >"$work/log/plugin.log"
	ALT_PROC_DEVICES_PATH= "$bin/gpu-kubelet-plugin" --kubeconfig "$config" --node-name "$node" --namespace "$namespace" --image-name none \
		--cdi-root "$state/cdi" --nvidia-driver-root "$work/driver" --container-driver-root "$work/driver" --nvidia-cdi-hook-path "$bin/nvidia-cdi-hook" \
		--kubelet-registrar-directory-path "$state/kubelet/plugins_registry" --kubelet-plugins-directory-path "$state/kubelet/plugins" \
		--feature-gates ConsumableShares=true --consumable-shares memory -v 6 >>"$work/log/plugin.log" 2>&1 &
	plugin=$!
	disown
	within 40 has_slice || { seen="no slice; $(tail -n 2 "$work/log/plugin.log")" && return 1; }
	seen="its slice is there"
}

slices() { api GET /apis/resource.k8s.io/v1/resourceslices; }
has_slice() { slices | tr -d ' \n' | grep -q '"driver":"gpu.nvidia.com".*"uuid"'; }

# published: the slice is kept as it is.
published() {
	local flat
	slices >"$out/resourceslices.json"
	flat=$(tr -d '\n' <"$out/resourceslices.json" | sed 's/  */ /g')
	uuid=$(echo "$flat" | grep -o '"uuid": { "string": "[^"]*"' | head -1 | cut -d'"' -f6)
	seen="$uuid, $(echo "$flat" | grep -o '"productName": { "string": "[^"]*"' | head -1 | cut -d'"' -f6), memory $(echo "$flat" | grep -o '"memory": { .*"value": "[^"]*"' | grep -o '"value": "[^"]*"' | head -1), $(echo "$flat" | grep -o '"allowMultipleAllocations": [a-z]*' | head -1), policy $(echo "$flat" | grep -o '"validRange": {[^}]*}' | head -1)"
	echo "$flat" | grep -q '"allowMultipleAllocations": true' && [ -n "$uuid" ]
}

agent_up() {
	LD_LIBRARY_PATH=$work/driver/usr/lib/x86_64-linux-gnu:${LD_LIBRARY_PATH:-} \
		carma agent --name "$node" --kubeconfig "$config" --kubernetes-namespace $namespace >>"$work/log/agent.log" 2>&1 &
	agent=$!
	disown
	within 30 told || { seen="it tells nothing; $(tail -n 2 "$work/log/agent.log")" && return 1; }
	seen=$(lease | cut -c1-400)
}

# lease is what the agent tells.
lease() { api GET "/apis/coordination.k8s.io/v1/namespaces/$namespace/leases/carma-node-$node" | sed 's/\\"/"/g' | grep -o '{"boot".*}\|{"gpus".*}'; }
told() { lease | grep -q '"uuid"'; }

daemon_up() {
	local folders="$torch_mounts ${stand_in:+$work/card}"
	folders=$(echo $folders | tr ' ' ',')
	carma daemon --driver kubernetes --kubeconfig "$config" --kubernetes-namespace $namespace --policy first-fit --idle-first=false --warm-up 0s --smact-cap 0 \
		--backoff 1s --web off ${folders:+--kubernetes-folders "$folders"} >>"$work/log/daemon.log" 2>&1 &
	daemon=$!
	disown
	within 30 carma gpus || { seen="it does not answer; $(tail -n 2 "$work/log/daemon.log")" && return 1; }
	within 10 bash -c 'carma gpus | grep -q "^ *0 "'
	carma gpus >>"$out/facts.txt" 2>&1
	seen=$(carma gpus | tr -s ' ' | tr '\n' ';')
}

# finish keeps the logs and stops all, however the run ended.
finish() {
	local code=$? pid
	trap - EXIT INT TERM
	{
		carma ps -a
		carma gpus
		carma history 2>&1 | tail -n 50
		for pid in $(carma ps -a -q 2>/dev/null); do carma inspect "$pid" && carma why "$pid" && carma logs "$pid" | tail -n 5; done
		api GET "/api/v1/namespaces/$namespace/pods"
		api GET "/apis/resource.k8s.io/v1/namespaces/$namespace/resourceclaims"
		api GET "/api/v1/namespaces/$namespace/events"
		lease
		ls -la "$state/cdi"
		dmesg 2>/dev/null | tail -n 30
	} >"$work/log/end.txt" 2>&1
	for pid in $guard $shower $daemon $agent $plugin; do kill "$pid" 2>/dev/null; done
	sleep 0.5
	for pid in $daemon $agent $plugin; do kill -9 "$pid" 2>/dev/null; done
	"$here/down.sh" --keep >/dev/null 2>&1
	cp -r "$state/log" "$work/log/cluster" 2>/dev/null
	tar -czf "$out/logs.tar.gz" -C "$work" log
	[ "$(stat -c %s "$out/logs.tar.gz")" -lt 15000000 ] || { find "$work/log" -type f -size +1M -exec truncate -s 1M {} \; && tar -czf "$out/logs.tar.gz" -C "$work" log; }
	say "all of it took $(took "$began") s; $(grep -c '| PASS |' "$table") passed, $(grep -c '| FAIL |' "$table") failed, $(grep -c '| NOT RUN |' "$table") not run"
	awk -v state="$work" 'index($2, state) == 1 { print $2 }' /proc/mounts | sort -r | while read -r pid; do umount -l "$pid"; done
	rm -rf "$work"
	exit "$code"
}
