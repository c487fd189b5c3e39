// Package web serves carma's page: its embedded files, the sessions, and the checks of
// its requests. The page gets all its data from the API, as the user who is signed in, so
// the API's rights apply. It can use only some of the API's routes: [allowed] lists them.
//
// The API's unix socket identifies a user and issues a ticket. A browser exchanges the
// ticket for a session, once. A request of a session needs its cookie, its key, which
// only the page's own origin can read, and a connection of the same user of this machine
// (or root).
//
//   - A ticket has 256 random bits, is valid for 5 minutes and once. It comes after #,
//     which browsers do not send, and leaves the address bar at once.
//   - A session lasts 12 hours, in memory only, 16 per user. Its cookie is HttpOnly and
//     SameSite=Strict. Browsers send cookies to every port of a host, so the cookie alone
//     is not enough: the key goes with each request.
//   - The kernel reports the owner of a connection: by the socket, or by its table of
//     connections for a port. A user who reads another's ticket in the process list
//     cannot use it.
//   - Host names are 127.0.0.1 and ::1 only, so that no foreign name can be made to point
//     here. Not localhost: another user may listen at its other address.
//   - Requests come from the page's own origin. A strict Content-Security-Policy with
//     trusted types allows no script but the page's files. Names and output are text.
//   - The port has at most 256 connections, which another user can hold; the socket has
//     its own 1,024 places with a limit per user, so a flood of the page takes none from
//     the API's socket.
//
// While somebody has the page open, the daemon takes a snapshot of the state every
// second, and sends the same changes to everybody. The live pages show at most 2,000
// unfinished tasks. The reasons of waiting tasks are not in the journal. Every 15 s the
// daemon stores in memory the reasons of the 40 tasks that have waited longest, at most
// 12 per task.
package web
