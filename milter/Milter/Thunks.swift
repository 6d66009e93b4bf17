// libmilter's callbacks: global functions that find the session and make one method call. They
// never throw and never trap. They must stay nonisolated and outside main.swift, as libmilter calls
// them on its own threads.

import CMilter
import Glibc

private func box(of context: OpaquePointer) -> SessionBox? {
    guard let pointer = smfi_getpriv(context) else { return nil }
    return Unmanaged<SessionBox>.fromOpaque(pointer).takeUnretainedValue()
}

/// After connect, a callback always has a session. If it had none, the mail would stay with the
/// client.
private func withBox(
    _ context: OpaquePointer?, _ body: (OpaquePointer, SessionBox) -> sfsistat
) -> sfsistat {
    guard let context, let box = box(of: context) else { return SMFIS_TEMPFAIL }
    return body(context, box)
}

private func string(_ pointer: UnsafePointer<CChar>?) -> String {
    pointer.map { String(cString: $0) } ?? ""
}

/// A null-terminated vector: the address first, ESMTP arguments after it.
private func envelope(
    _ argv: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?
) -> (path: String, arguments: [String]) {
    guard let argv, let path = argv[0] else { return ("", []) }
    var arguments = [String]()
    var index = 1
    while let argument = argv[index] {
        arguments.append(String(cString: argument))
        index += 1
    }
    return (String(cString: path), arguments)
}

func negotiateThunk(
    _ context: OpaquePointer?, _ offeredActions: UInt, _ offeredSteps: UInt, _: UInt, _: UInt,
    _ actions: UnsafeMutablePointer<UInt>?, _ steps: UnsafeMutablePointer<UInt>?,
    _ reserved2: UnsafeMutablePointer<UInt>?, _ reserved3: UnsafeMutablePointer<UInt>?
) -> sfsistat {
    let (installation, draining) = process.with { ($0.installation, $0.draining) }
    guard let context, let installation, !draining else { return SMFIS_REJECT }
    if let others = installation.peers?.endOtherPeers(), !others.isEmpty {
        installation.log(.otherPeersAtSocket(others))
    }
    let negotiation = Negotiation(installation.needs)
    if let reason = negotiation.refusal(offeredActions: offeredActions, offeredSteps: offeredSteps)
    {
        installation.log(.refusedMTA(reason: reason))
        return SMFIS_REJECT
    }
    actions?.pointee = negotiation.actions
    steps?.pointee = negotiation.protocolSteps
    reserved2?.pointee = 0
    reserved3?.pointee = 0
    // Without SMFIF_SETSYMLIST, the MTA's own lists apply (Postfix:
    // milter_connect_macros and so on).
    if offeredActions & UInt(SMFIF_SETSYMLIST) != 0, !installation.needs.macros.isEmpty {
        actions?.pointee |= UInt(SMFIF_SETSYMLIST)
        for (stage, names) in installation.needs.macros {
            _ = names.joined(separator: " ").withCString {
                smfi_setsymlist(context, stage.libmilterStage, UnsafeMutablePointer(mutating: $0))
            }
        }
    }
    return SMFIS_CONTINUE
}

func connectThunk(
    _ context: OpaquePointer?, _ hostName: UnsafeMutablePointer<CChar>?,
    _ address: UnsafeMutablePointer<sockaddr>?
) -> sfsistat {
    guard let context, let installation = process.with({ $0.installation }) else {
        return SMFIS_TEMPFAIL
    }
    let macros = ContextMacros()
    macros.context = context
    var values = [String: String]()
    for name in installation.needs.macros[.connect] ?? [
        "{daemon_name}", "{daemon_addr}", "j", "v", "_",
    ] {
        if let value = macros[name] { values[name] = value }
    }
    let connection = MilterConnection(
        hostName: string(hostName), peer: MilterPeer(UnsafePointer(address)), macros: values)
    let box = SessionBox(connection: connection, installation: installation)
    let retained = Unmanaged.passRetained(box)
    guard smfi_setpriv(context, retained.toOpaque()) == MI_SUCCESS else {
        retained.release()
        return SMFIS_TEMPFAIL
    }
    return box.answer(context, to: .connect) { $0.connected() }
}

func heloThunk(_ context: OpaquePointer?, _ name: UnsafeMutablePointer<CChar>?) -> sfsistat {
    withBox(context) { context, box in box.answer(context, to: .helo) { $0.helo(string(name)) } }
}

func mailThunk(
    _ context: OpaquePointer?, _ argv: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?
) -> sfsistat {
    withBox(context) { context, box in
        let (path, arguments) = envelope(argv)
        return box.answerMessage(context, to: .mail) {
            $0.mail(path, arguments: arguments, macros: box.macros)
        }
    }
}

func recipientThunk(
    _ context: OpaquePointer?, _ argv: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?
) -> sfsistat {
    withBox(context) { context, box in
        let (path, arguments) = envelope(argv)
        return box.answerMessage(context, to: .recipient) {
            $0.recipient(path, arguments: arguments, macros: box.macros)
        }
    }
}

func dataThunk(_ context: OpaquePointer?) -> sfsistat {
    withBox(context) { context, box in
        box.answerMessage(context, to: .data) { $0.data(macros: box.macros) }
    }
}

func unknownThunk(_ context: OpaquePointer?, _ command: UnsafePointer<CChar>?) -> sfsistat {
    withBox(context) { context, box in
        box.answer(context, to: .unknown) { $0.unknown(command: string(command)) }
    }
}

func headerThunk(
    _ context: OpaquePointer?, _ name: UnsafeMutablePointer<CChar>?,
    _ value: UnsafeMutablePointer<CChar>?
) -> sfsistat {
    withBox(context) { context, box in
        let name = Array(UnsafeRawBufferPointer(start: name, count: name.map { strlen($0) } ?? 0))
        let value = MilterWire.incoming(
            fieldValue: UnsafeRawBufferPointer(start: value, count: value.map { strlen($0) } ?? 0))
        return box.answerMessage(context, to: .header) { $0.header(name: name, value: value) }
    }
}

func endOfHeadersThunk(_ context: OpaquePointer?) -> sfsistat {
    withBox(context) { context, box in
        box.answerMessage(context, to: .endOfHeaders) { $0.endOfHeaders() }
    }
}

func bodyThunk(
    _ context: OpaquePointer?, _ bytes: UnsafeMutablePointer<UInt8>?, _ count: Int
) -> sfsistat {
    withBox(context) { context, box in
        let chunk = UnsafeRawBufferPointer(start: bytes, count: bytes == nil ? 0 : count)
        return box.answerMessage(context, to: .body) { $0.body(chunk) }
    }
}

func endOfMessageThunk(_ context: OpaquePointer?) -> sfsistat {
    withBox(context) { context, box in box.endOfMessage(context) }
}

func abortThunk(_ context: OpaquePointer?) -> sfsistat {
    if let context { box(of: context)?.end() }
    return SMFIS_CONTINUE
}

func closeThunk(_ context: OpaquePointer?) -> sfsistat {
    guard let context, let pointer = smfi_getpriv(context) else { return SMFIS_CONTINUE }
    smfi_setpriv(context, nil)
    let box = Unmanaged<SessionBox>.fromOpaque(pointer).takeRetainedValue()
    box.end()
    box.session.closed()
    return SMFIS_CONTINUE
}

extension MilterPeer {
    /// Reads the address that libmilter passes to the connect callback; nil if the MTA knows none.
    init(_ address: UnsafePointer<sockaddr>?) {
        guard let address else {
            self = .unknown
            return
        }
        var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        switch Int32(address.pointee.sa_family) {
        case AF_INET:
            self = address.withMemoryRebound(to: sockaddr_in.self, capacity: 1) { address in
                var octets = address.pointee.sin_addr
                guard inet_ntop(AF_INET, &octets, &text, socklen_t(text.count)) != nil else {
                    return .unknown
                }
                return .ipv4(string(text), port: UInt16(bigEndian: address.pointee.sin_port))
            }
        case AF_INET6:
            self = address.withMemoryRebound(to: sockaddr_in6.self, capacity: 1) { address in
                var octets = address.pointee.sin6_addr
                guard inet_ntop(AF_INET6, &octets, &text, socklen_t(text.count)) != nil else {
                    return .unknown
                }
                return .ipv6(string(text), port: UInt16(bigEndian: address.pointee.sin6_port))
            }
        case AF_UNIX:
            self = address.withMemoryRebound(to: sockaddr_un.self, capacity: 1) { address in
                withUnsafeBytes(of: address.pointee.sun_path) { path in
                    .unix(String(decoding: path.prefix { $0 != 0 }, as: UTF8.self))
                }
            }
        default: self = .unknown
        }
    }
}
