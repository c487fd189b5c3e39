# shellcheck shell=bash
# The steps of test/package.sh, which has the words that they use.

steps() {
	say "install ..."
	try dpkg -i "/srv/$(basename "$old")"
	has 'carma doctor'
	try systemctl is-enabled carma
	try systemctl show carma -p ActiveState,StatusText
	has 'ActiveState=active'
	has 'StatusText=answers at /run/carma/carma.sock; GPUs: sim:'
	try systemd-analyze verify --man=no carma.service carma.socket
	[ -z "$said" ] || die "systemd-analyze verify: $said"
	# 6.4 when it was written; what is left open is said in the unit.
	try systemd-analyze security --no-pager --threshold=65 carma.service
	try carma version
	has 'daemon +0.0.1'
	try carma doctor
	has 'ok +service +carma.service runs, and starts with the machine'
	has 'warning +admins +nobody is in group carma'
	has 'ok +mounts +users may mount below ~'
	lacks '^failure'
	try sh -c 'stat -c "%a %U %n" /run/carma/carma.sock /var/lib/carma /etc/carma/config.yaml'
	has '^666 root /run/carma/carma.sock'
	has '^700 root /var/lib/carma'
	try carma config
	try bash -lic '_carma_load; type __start_carma' # without bash-completion
	has '__start_carma is a function'
	try sh -c 'ls /usr/share/man/man1/carma-run.1.gz /usr/share/doc/carma/LICENSES.txt.gz /usr/share/doc/carma/sbom.spdx.json.gz /usr/share/zsh/vendor-completions/_carma /usr/share/fish/vendor_completions.d/carma.fish'

	say "a task of a second user, with a folder of hers ..."
	try useradd -m ann
	try useradd -m -G carma bob
	as_ ann 'mkdir data; carma run -d --name long -v ~/data:/data carma/simtask resnet50-imagenet-bs64 --time 30m'
	until_ sh -c 'carma ps | grep -q running'
	as_ ann 'carma doctor'
	has 'you are not in group carma'
	as_ bob 'carma doctor'
	has 'you are in group carma'
	try docker ps --format '{{.ID}} {{.Status}}'
	container=$said

	say "the service manager is told, and the watchdog fed ..."
	try sh -c 'echo "polciy: x" >>/etc/carma/config.yaml; systemctl reload carma'
	until_ sh -c 'systemctl show carma -p StatusText | grep -q "config.yaml:[0-9]*: unknown key \"polciy\"; did you mean policy"'
	try sh -c 'sed -i \$d /etc/carma/config.yaml; systemctl reload carma'
	until_ sh -c 'systemctl show carma -p StatusText | grep -q answers'
	try sh -c 'mkdir -p /run/systemd/system/carma.service.d; printf "[Service]\nWatchdogSec=4s\nTimeoutAbortSec=1s\nRestartSec=1s\n" >/run/systemd/system/carma.service.d/test.conf; systemctl daemon-reload; systemctl restart carma'
	sleep 6
	try systemctl show carma -p NRestarts,ActiveState
	has 'NRestarts=0'
	has 'ActiveState=active'
	try systemctl kill --kill-who=main -s STOP carma # its loop stands still
	until_ sh -c 'systemctl show carma -p NRestarts | grep -q =1'
	until_ carma info
	try sh -c 'rm -r /run/systemd/system/carma.service.d; systemctl daemon-reload'
	same

	say "a driver that does not work is one clear line, no simulation ..."
	try sh -c 'touch /usr/bin/nvidia-smi; systemctl restart carma || true; journalctl -u carma -o cat -n 30 --no-pager'
	has 'carma daemon: there is /usr/bin/nvidia-smi, but the GPUs cannot be read'
	try sh -c 'carma doctor || true'
	has 'failure +service +carma.service ends soon after each start'
	has 'failure +GPUs +there is /usr/bin/nvidia-smi'
	try sh -c 'rm /usr/bin/nvidia-smi; systemctl reset-failed carma; systemctl restart carma'
	same

	say "the socket unit: not enabled; a client waits for the daemon, or starts it ..."
	try sh -c 'systemctl is-enabled carma.socket || true'
	has '^disabled$'
	try sh -c 'systemctl stop carma && systemctl start carma.socket'
	try systemctl is-active carma.socket
	try sh -c 'systemctl is-active carma || true'
	has '^inactive$'
	try sh -c 'stat -c "%a %U %n" /run/carma/carma.sock'
	has '^666 root '
	as_ ann 'carma ps'
	has 'long .*running'
	try systemctl is-active carma
	same
	as_ ann 'carma ps --mine' # who asks is who has connected, not systemd
	has 'long .*running'
	as_ bob 'carma ps --mine'
	lacks 'long'

	say "upgrade while the task runs ..."
	try sh -c 'echo "# mine" >>/etc/carma/config.yaml'
	try dpkg -i "/srv/$(basename "$new")"
	try carma version
	has 'daemon +0.0.2'
	try tail -n 1 /etc/carma/config.yaml
	has '^# mine'
	same

	say "remove: the task goes on, the data stay; install again; purge ..."
	try dpkg -r carma
	has 'running tasks go on'
	try sh -c 'systemctl is-active carma.socket carma || true'
	lacks '^active$'
	try test -s /var/lib/carma/carma.db
	try docker ps --format '{{.ID}}'
	[ "$said" = "${container%% *}" ] || die "the task's container is gone: $said"
	try dpkg -i "/srv/$(basename "$new")"
	same
	as_ ann 'carma stop --now long'
	try dpkg -P carma
	try sh -c 'find / -xdev \( -path /proc -o -path /var/lib/docker -o -path /srv -o -path /var/cache/man -o -path /var/log \) -prune -o -name "*carma*" -print'
	[ -z "$said" ] || die "left over: $said"
	try systemctl --failed --no-legend
	[ -z "$said" ] || die "failed units: $said"
}

# same: the task still runs, in the container in which it was started.
same() {
	until_ sh -c 'carma ps | grep -q "long .*running"'
	try docker ps --format '{{.ID}} {{.Status}}'
	[ "${said%% *}" = "${container%% *}" ] || die "another container: $said, before $container"
}

# daemon_image runs the daemon's image in a folder as docs/install.md says.
daemon_image() {
	say "the daemon in a container ..."
	nsenter -t "$machine" -a docker load <"$(echo "$1"/*-image.tar)" >>"$work/log"
	try sh -c 'id=$(docker create carma/daemon) && docker cp "$id":/usr/lib/carma - | tar -C /usr/lib -x && docker rm "$id"'
	try docker run -d --name carma --restart unless-stopped --cap-add SYS_ADMIN --cap-add SYS_PTRACE \
		--security-opt seccomp=unconfined --security-opt apparmor=unconfined --pid host --network host \
		-v /run/carma:/run/carma -v /var/lib/carma:/var/lib/carma -v /run/docker.sock:/var/run/docker.sock \
		-v /etc/carma:/etc/carma:ro -v /etc/passwd:/etc/passwd:ro -v /etc/group:/etc/group:ro carma/daemon
	until_ /usr/lib/carma/carma info
	try /usr/lib/carma/carma doctor
	has 'warning +mounts +users cannot mount folders'
	try runuser -u ann -- /usr/lib/carma/carma run carma/simtask resnet50-imagenet-bs64 --time 2s
	try runuser -u ann -- /usr/lib/carma/carma ps --all
	has 'ann +succeeded'
	try docker rm -f carma
}

# rpm_package looks at the .rpm in a folder.
rpm_package() {
	say "the .rpm ..."
	local package
	package=$(echo "$1"/carma-[0-9]*.rpm)
	said=$(rpm -qp --qf '%{NAME} %{VERSION} %{LICENSE}\n' "$package" 2>&1)
	has '^carma 0.0.2 Apache-2.0'
	said=$(rpm -qpl "$package" 2>&1)
	for file in /usr/bin/carma /usr/lib/carma/carma-init /usr/lib/systemd/system/carma.service /usr/lib/systemd/system/carma.socket /usr/lib/sysusers.d/carma.conf \
		/usr/lib/tmpfiles.d/carma.conf /usr/share/man/man1/carma-run.1.gz /usr/share/zsh/site-functions/_carma /usr/share/licenses/carma/LICENSE; do
		has "^$file\$"
	done
	said=$(rpm -qp --configfiles "$package" 2>&1)
	has '^/etc/carma/config.yaml'
	said=$(rpm -qp --requires "$package" 2>&1)
	has '^glibc >= 2.34'
	said=$(rpm -qp --scripts "$package" 2>&1)
	has 'systemd-sysusers carma.conf'
	has 'try-restart carma.service'
	rpm -K --nosignature "$package" >>"$work/log" || die "its checksums are wrong"
	# Each script is what the shell can read.
	for script in configs/package/rpm/*; do sh -n "$script"; done
	# Installed into an empty folder: dependencies and scripts aside, its files are whole.
	rpm --root "$work/rpm" --initdb
	rpm --root "$work/rpm" -i --nodeps --noscripts "$package" >>"$work/log" 2>&1 || die "it cannot be installed"
	rpm --root "$work/rpm" -V --nodeps carma >>"$work/log" 2>&1 || die "its files are not as it says"
	"$work/rpm/usr/lib/carma/carma" version >>"$work/log"
}
