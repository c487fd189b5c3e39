// Package mounts makes sure that a container gets the file or folder that was checked,
// and no other.
//
// Checking a path is not enough, because its owner can replace it by a link to / between
// the check and the engine's mount. So the source is opened with the rights of the user
// who asks for it ([Gate.Open]). The open descriptor always means the same object. The
// kernel reports the path of that object; it must be in an allowed folder. Then the
// descriptor is bound to a place in a folder that only root can enter ([Stage.Place]),
// and the engine mounts that place. Later changes of the path have no effect.
//
// /proc/PID/fd/N as the source of the engine's mount does not work: the runtime mounts in
// a namespace of its own, and the kernel refuses a descriptor of another one (EINVAL).
//
// If the file system supports mounts with mapped users, root can create nothing at the
// place of a folder. This matters because the container's runtime works as root and
// follows links.
//
// The package also stores files that carma mounts into containers ([Files]).
//
// Acting for other users requires Linux 5.8 or newer, and root.
package mounts
