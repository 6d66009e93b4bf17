// A private Postfix, a sink after it and the scripted filter before it: the base of most tests
// here.

import Foundation
import PostfixHarness
import Testing

/// `stop`, or the release of the last reference, stops and removes everything.
final class PostfixFixture: Sendable {
    let sink: SMTPSink
    let postfix: PrivatePostfix
    let filter: ManagedProcess
    let folder: String

    /// The address at which the filter listens.
    var socket: String { "unix:\(folder)/filter.sock" }

    init(
        _ script: String = "", sink behaviour: SinkBehaviour = SinkBehaviour(),
        settings: [String: String] = [:],
        services: [String] = [], trustsLoopback: Bool = false
    ) throws {
        folder = try Self.makeFolder()
        try script.write(toFile: folder + "/script", atomically: true, encoding: .utf8)
        sink = try SMTPSink(behaviour)
        filter = try Self.startFilter(folder)
        var options = PrivatePostfix.Options()
        options.socket = "unix:\(folder)/filter.sock"
        // Recipients that the filter does not rewrite also go to the sink.
        options.routes = ["*": sink.port]
        options.settings = ["virtual_transport": "smtp:[127.0.0.1]:\(sink.port)"].merging(settings)
        { $1 }
        options.services = services
        options.trustsLoopback = trustsLoopback
        postfix = try PrivatePostfix(options)
    }

    deinit { stop() }

    func stop() {
        postfix.stop()
        filter.end()
        sink.stop()
        try? FileManager.default.removeItem(atPath: folder)
    }

    /// A folder that Postfix's unprivileged processes may enter.
    static func makeFolder() throws -> String {
        let folder =
            NSTemporaryDirectory() + "postern-fixture-" + UUID().uuidString.prefix(8).lowercased()
        try FileManager.default.createDirectory(
            atPath: folder, withIntermediateDirectories: true,
            attributes: [.posixPermissions: 0o755])
        return folder
    }

    static func startFilter(_ folder: String) throws -> ManagedProcess {
        let filter = try ManagedProcess(
            ManagedProcess.builtProduct("postfix-test-filter"),
            ["unix:\(folder)/filter.sock", folder + "/script"])
        try filter.waitForLine(containing: "listening on")
        // The socket belongs to root; Postfix's smtpd runs as postfix.
        guard chmod(folder + "/filter.sock", 0o666) == 0 else { throw HarnessError("chmod") }
        return filter
    }

    /// The filter uses this script from the next connection and message on.
    func script(_ text: String) throws {
        try text.write(toFile: folder + "/script", atomically: true, encoding: .utf8)
    }

    /// Sends a message and returns the message that the sink received; throws if it was not
    /// accepted.
    func relay(
        _ message: String, from: String = "<sender@out.test>",
        to recipients: [String] = ["<user@relay.test>"]
    ) throws -> SinkMessage {
        let result = try postfix.send(from: from, to: recipients, message: Array(message.utf8))
        guard result.data?.code == 250 else {
            throw HarnessError("\(result)\n\(postfix.logTail)\n--- filter\n\(filter.output)")
        }
        let number = sink.messages.count
        try postfix.waitUntilDone([result.queueID].compactMap { $0 })
        guard let message = sink.messages.dropFirst(number).last ?? sink.messages.last else {
            throw HarnessError("nothing arrived\n\(postfix.logTail)")
        }
        return message
    }

    /// Lines of the filter that begin with this prefix.
    func seen(_ prefix: String) -> [String] { filter.lines.filter { $0.hasPrefix(prefix) } }
}

let needsPostfix: ConditionTrait = .enabled(
    if: PrivatePostfix.obstacle == nil, "skipped: needs root and an installed Postfix")

/// A message with these fields and this body, lines ended by CRLF.
func mail(_ fields: [String], body: String = "body\r\n") -> String {
    fields.map { $0 + "\r\n" }.joined() + "\r\n" + body
}
