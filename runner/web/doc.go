// Package web serves carma's page: the embedded files, who is signed in, and the
// walls around it. What the page shows it asks of the API, as the user who is signed
// in, so the API's rights are the page's. The page can ask for less than the API has:
// [allowed] lists the routes.
//
// A user is known by the API's unix socket, and gets a ticket there. A browser
// changes the ticket into a session, once. A request of a session needs its cookie,
// its key, which only the page's own origin can read, and a connection of the same
// user of this machine (or root).
package web
