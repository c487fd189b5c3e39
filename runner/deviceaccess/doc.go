// Package deviceaccess watches whether the containers of running attempts can open the
// device nodes of their GPUs. The nodes, or the device rules of a control group, can change
// under a running container.
//
// A [Watcher] owns the result of each attempt's last check. It reports changes, and the
// attempts that must end because they lost their devices and do not use them. It stops no
// attempt itself.
package deviceaccess
