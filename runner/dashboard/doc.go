// Package dashboard makes the feed that the web page and carma top follow: snapshots of the
// daemon, its GPUs and tasks, once a second while somebody looks, of which a viewer gets the
// changes. A user of a cluster gets snapshots of the tasks that the user may know of. The expected
// starts of the first tasks in the queue are forecast beside the snapshots.
package dashboard
