// The session of the test filter: writes every event as a line, answers and
// modifies as its script says.

import Foundation
import Milter

struct ScriptHandler: MilterHandler {
    let script: String?
    let needs: MilterNeeds

    func makeSession(connection: MilterConnection) -> any MilterSession {
        ScriptSession(script, connection)
    }
}

private struct ThrownByScript: Error {}

final class ScriptSession: MilterSession {
    private let file: String?
    private var script: Script
    private var body = [UInt8]()
    private var keepsBody = false
    private var bodyLength = 0

    init(_ file: String?, _ connection: MilterConnection) {
        self.file = file
        script = Script(file: file)
        Output.say(
            "connect \(connection.hostName) \(connection.peer) daemon=\(connection.daemonName ?? "-")"
                + " client_addr=\(connection.macros["{client_addr}"] ?? "-")")
    }

    func connected() -> MilterReply { script.reply("connect") }

    func helo(_ name: String) -> MilterReply {
        Output.say("helo \(name)")
        return script.reply("helo")
    }

    func mail(_ path: String, arguments: [String], macros: any MilterMacros) -> MilterReply {
        script = Script(file: file)
        keepsBody = script.lines.contains { $0[0] == "body-echo" }
        (body, bodyLength) = ([], 0)
        Output.say(
            "mail [\(path)] \(arguments.joined(separator: ",")) i=\(macros["i"] ?? "-")"
                + " auth=\(macros["{auth_authen}"] ?? "-") daemon=\(macros["{daemon_name}"] ?? "-")"
        )
        return script.reply("mail")
    }

    func recipient(_ path: String, arguments: [String], macros: any MilterMacros) -> MilterReply {
        Output.say("rcpt [\(path)] \(arguments.joined(separator: ",")) i=\(macros["i"] ?? "-")")
        return script.reply("rcpt", path: path)
    }

    func data(macros: any MilterMacros) -> MilterReply {
        Output.say("data")
        return script.reply("data")
    }

    func unknown(command: String) -> MilterReply {
        Output.say("unknown \(command)")
        return .continue
    }

    func header(name: [UInt8], value: [UInt8]) -> MilterReply {
        // A long value by its length, so that the output stays readable.
        let text = value.count > 2000 ? "(\(value.count) octets)" : Output.escaped(value)
        Output.say("header [\(Output.escaped(name))]:\(text)|")
        return script.reply("header")
    }

    func endOfHeaders() -> MilterReply {
        Output.say("eoh")
        return script.reply("eoh")
    }

    func body(_ chunk: UnsafeRawBufferPointer) -> MilterReply {
        bodyLength += chunk.count
        if keepsBody { body += chunk }
        return script.reply("body")
    }

    func endOfMessage(_ actions: any MilterActions) throws -> MilterReply {
        Output.say(
            "eom body=\(bodyLength) i=\(actions.macros["i"] ?? "-") daemon=\(actions.macros["{daemon_name}"] ?? "-")"
        )
        let origin = actions.macros["{daemon_name}"] == "internal" ? "internal" : "smtp"
        for line in script.lines {
            try apply(line.first == origin ? Array(line.dropFirst()) : line, actions)
        }
        return script.reply("eom")
    }

    private func apply(_ line: [String], _ actions: any MilterActions) throws {
        func word(_ index: Int) -> String { index < line.count ? line[index] : "" }
        let arguments = line.count > 2 ? line[2...].joined(separator: " ") : nil
        switch word(0) {
        case "change":
            try actions.changeHeader(
                word(1), index: Int(word(2)) ?? 0, value: Script.value(line.dropFirst(3)))
        case "delete": try actions.deleteHeader(word(1), index: Int(word(2)) ?? 0)
        case "insert":
            try actions.insertHeader(
                at: Int(word(1)) ?? 0, word(2), value: Script.value(line.dropFirst(3)))
        case "add": try actions.addHeader(word(1), value: Script.value(line.dropFirst(2)))
        case "from": try actions.changeFrom(word(1), arguments: arguments)
        case "addrcpt": try actions.addRecipient(word(1), arguments: arguments)
        case "delrcpt": try actions.deleteRecipient(line.dropFirst().joined(separator: " "))
        case "body":
            try actions.replaceBody([Array(Data(contentsOf: URL(fileURLWithPath: word(1))))])
        case "body-echo": try actions.replaceBody([body])
        case "body-empty": try actions.replaceBody([[UInt8]]())
        case "progress": try actions.progress()
        case "throw": throw ThrownByScript()
        default: break
        }
    }

    func abort() { Output.say("abort") }

    func closed() { Output.say("closed") }
}
