// The two protocols a filter implements: a handler for the process, a session for each SMTP connection.

/// Reads macros of the message at hand. Valid during the call it was handed to; afterwards every macro is nil.
package protocol MilterMacros: AnyObject {
    /// The value of a macro, by its name: `i`, `{auth_authen}`, `{client_addr}`…; nil where the MTA did not send it.
    subscript(name: String) -> String? { get }
}

/// Makes the sessions. One handler serves the whole process, from several threads.
package protocol MilterHandler: Sendable {
    /// What is asked of every MTA in the negotiation; read once, when the server starts.
    var needs: MilterNeeds { get }
    /// Called once for each SMTP connection.
    func makeSession(connection: MilterConnection) -> any MilterSession
}

/// The events of one SMTP connection. They come on different threads, one after another, never concurrently; a session needs no
/// lock, and must not use thread-local storage. A session may carry several messages, one after another.
///
/// Strings are the octets of the wire decoded as UTF-8, with U+FFFD for what is none: such an address cannot be deleted again.
package protocol MilterSession: AnyObject {
    /// The answer to the connection; only asked where `.connect` is among the handler's answers.
    func connected() -> MilterReply
    func helo(_ name: String) -> MilterReply
    /// A message begins. `path` as the client wrote it, with its angle brackets: `<a@b.example>`, `<>`. Postfix's own
    /// bounces (non_smtpd_milters) come without brackets: the null sender is then the empty string.
    func mail(_ path: String, arguments: [String], macros: any MilterMacros) -> MilterReply
    /// A recipient that the MTA itself would accept, with brackets as for `mail`.
    func recipient(_ path: String, arguments: [String], macros: any MilterMacros) -> MilterReply
    func data(macros: any MilterMacros) -> MilterReply
    func unknown(command: String) -> MilterReply
    /// One header field. `name`: as the MTA sends it. `value`: everything after the colon, leading white space included,
    /// folds as CRLF and white space.
    func header(name: [UInt8], value: [UInt8]) -> MilterReply
    func endOfHeaders() -> MilterReply
    /// The next octets of the body, at most 65,535, lines ended by CRLF. Valid during the call.
    func body(_ chunk: UnsafeRawBufferPointer) -> MilterReply
    /// The message is complete; the only place for modifications. An error that is thrown becomes `451 4.3.0`, which voids
    /// every modification already sent, and is logged by its description.
    func endOfMessage(_ actions: any MilterActions) throws -> MilterReply
    /// The message at hand will not come to its end: RSET, a lost connection, or a refusal. The connection may go on.
    /// Also called where no message had begun; never after `endOfMessage` for the same message.
    func abort()
    /// The connection is over; the last call.
    func closed()
}

/// What a session does with events it does not care for: nothing.
extension MilterSession {
    package func connected() -> MilterReply { .continue }
    package func helo(_ name: String) -> MilterReply { .continue }
    package func mail(_ path: String, arguments: [String], macros: any MilterMacros) -> MilterReply { .continue }
    package func recipient(_ path: String, arguments: [String], macros: any MilterMacros) -> MilterReply { .continue }
    package func data(macros: any MilterMacros) -> MilterReply { .continue }
    package func unknown(command: String) -> MilterReply { .continue }
    package func header(name: [UInt8], value: [UInt8]) -> MilterReply { .continue }
    package func endOfHeaders() -> MilterReply { .continue }
    package func body(_ chunk: UnsafeRawBufferPointer) -> MilterReply { .continue }
    package func abort() {}
    package func closed() {}
}
