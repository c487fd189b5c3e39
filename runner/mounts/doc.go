// Package mounts holds what a user may mount to the object that was checked.
//
// A path is no proof: between a check and the engine's mount its owner can put
// a link to / in its place. So a source is opened as the user who asks for it,
// with that user's rights on every folder of the path ([Gate.Open]). The open
// descriptor is one object for good. Where that object lies is what the kernel
// says of the descriptor, not of a path; it must lie in an allowed folder. Then
// the descriptor is bound to a place in a folder that only root can enter
// ([Stage.Place]), and the engine mounts that place. What happens to the path
// in between changes nothing.
//
// /proc/PID/fd/N as the source of the engine's mount does not work: the runtime
// mounts in a namespace of its own, and the kernel refuses a descriptor of
// another one (EINVAL).
//
// Linux 5.8 or newer, and root, are needed to act for other users.
package mounts
