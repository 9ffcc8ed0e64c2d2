// Package network accepts connections and turns each into an ordered pipeline of
// requests and responses.
//
// Two transports stand under the same Conn: gnet event loops, and any
// net.Listener. Nothing outside knows which one a connection came from.
package network
