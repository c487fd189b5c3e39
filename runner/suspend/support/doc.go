// Package support decides where tasks can be suspended.
//
// A [Support] has the settings, and records whether the suspend helper works on this
// machine. It answers how tasks on a GPU can be suspended, why not, and how to fix that.
package support
