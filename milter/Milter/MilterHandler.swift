// The two protocols that a filter implements: a handler for the process, and a session for
// each SMTP connection.

/// Reads macros of the current message. Valid only during the call that passes it;
/// afterwards every macro is nil.
package protocol MilterMacros: AnyObject {
    /// The value of a macro, by its name: `i`, `{auth_authen}`, `{client_addr}`…; nil if
    /// the MTA did not send it.
    subscript(name: String) -> String? { get }
}

/// Makes the sessions. One handler serves the whole process, from several threads.
package protocol MilterHandler: Sendable {
    /// The requirements for every MTA in the negotiation; read once, when the server starts.
    var needs: MilterNeeds { get }
    /// Called once for each SMTP connection.
    func makeSession(connection: MilterConnection) -> any MilterSession
}

/// The events of one SMTP connection. They come on different threads, one after another, never
/// concurrently. A session needs no lock, and must not use thread-local storage. A session may
/// receive several messages, one after another.
///
/// Strings are the octets of the protocol decoded as UTF-8, with U+FFFD for invalid octets. An
/// address with invalid octets cannot be deleted.
/// again.
package protocol MilterSession: AnyObject {
    /// The answer to the connection; used only if `.connect` is among the handler's answers.
    func connected() -> MilterReply
    func helo(_ name: String) -> MilterReply
    /// A message begins. `path` is exactly as the client wrote it, with its angle brackets:
    /// `<a@b.example>`, `<>`. Postfix's own bounces (non_smtpd_milters) come without brackets, so
    /// their null sender is the empty string.
    func mail(_ path: String, arguments: [String], macros: any MilterMacros) -> MilterReply
    /// A recipient that the MTA itself would accept, with brackets as for `mail`.
    func recipient(_ path: String, arguments: [String], macros: any MilterMacros) -> MilterReply
    func data(macros: any MilterMacros) -> MilterReply
    func unknown(command: String) -> MilterReply
    /// One header field. `name`: as the MTA sends it. `value`: everything after the colon,
    /// including leading white space, with folds as CRLF and white space.
    func header(name: [UInt8], value: [UInt8]) -> MilterReply
    func endOfHeaders() -> MilterReply
    /// The next octets of the body, at most 65,535, lines ended by CRLF. Valid during the call.
    func body(_ chunk: UnsafeRawBufferPointer) -> MilterReply
    /// The message is complete. Modifications are possible only here. A thrown error becomes `451
    /// 4.3.0`, which cancels every modification already sent, and its description is logged.
    func endOfMessage(_ actions: any MilterActions) throws -> MilterReply
    /// The current message will not be completed: RSET, a lost connection, or a refusal. The
    /// connection may continue. Also called if no message had begun, but never after `endOfMessage`
    /// for the same message.
    func abort()
    /// The connection is over; the last call.
    func closed()
}

/// Default for events that a session does not handle: do nothing.
extension MilterSession {
    package func connected() -> MilterReply { .continue }
    package func helo(_ name: String) -> MilterReply { .continue }
    package func mail(_ path: String, arguments: [String], macros: any MilterMacros) -> MilterReply
    { .continue }
    package func recipient(
        _ path: String, arguments: [String], macros: any MilterMacros
    ) -> MilterReply { .continue }
    package func data(macros: any MilterMacros) -> MilterReply { .continue }
    package func unknown(command: String) -> MilterReply { .continue }
    package func header(name: [UInt8], value: [UInt8]) -> MilterReply { .continue }
    package func endOfHeaders() -> MilterReply { .continue }
    package func body(_ chunk: UnsafeRawBufferPointer) -> MilterReply { .continue }
    package func abort() {}
    package func closed() {}
}
