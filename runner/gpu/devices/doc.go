// Package devices checks whether the processes of a container can still open the device
// nodes of its GPUs.
//
// An engine, systemd or an administrator can revoke a GPU from a running container: after
// systemctl daemon-reload, systemd applies its own device rules again, which lack the
// nodes that NVIDIA's hook has added (NVIDIA/nvidia-container-toolkit#1227). Programs
// that have the GPU open continue. Programs that open it later fail with "no CUDA-capable
// device is detected".
//
// The kernel applies the device rules of the requesting process's control group. So a
// [Checker] starts a child process ([RunChild]), which enters the container's control
// group, asks for read and write access with faccessat2, and leaves the group again.
// faccessat2 makes the same check as open and does not call the GPU's driver: a hanging
// driver cannot keep the child in the group, a sleeping GPU is not woken, and a node that
// a container's root has made for another device is not opened.
//
// The package depends on no engine and no task: the runner names the containers.
package devices
