// A real browser: headless Chromium, driven by WebDriver (W3C Recommendation) through chromedriver.

import Foundation

/// One browser window with its own profile. `quit` ends it.
package final class Browser {
    package static let driver = ["/usr/bin/chromedriver", "/usr/local/bin/chromedriver"].first(
        where: FileManager.default.isExecutableFile)
    private let process: ManagedProcess
    private let port: UInt16
    private var session = ""
    /// The folder with the desktop's program and the addresses it got; nil if no scheme leads to
    /// it.
    private let handler: URL?

    /// An app's own scheme, and the origin from which pages may open it without a prompt.
    package struct AppScheme {
        let name: String
        let origin: String

        package init(_ name: String, from origin: String) {
            (self.name, self.origin) = (name, origin)
        }
    }

    package init(opening scheme: AppScheme? = nil) throws {
        guard let driver = Self.driver else { throw HarnessError("there is no chromedriver") }
        handler = try scheme.map { _ in try Self.makeHandler() }
        (process, port) = try Self.start(driver, handler)
        var options: [String: Any] = [
            "args": [
                "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                "--window-size=1000,900",
            ]
        ]
        if let scheme {
            options["prefs"] = [
                "protocol_handler": [
                    "allowed_origin_protocol_pairs": [scheme.origin: [scheme.name: true]]
                ]
            ]
        }
        let value = try call(
            "POST", "/session",
            [
                "capabilities": [
                    "alwaysMatch": [
                        "browserName": "chrome", "goog:chromeOptions": options,
                        "goog:loggingPrefs": ["browser": "ALL", "performance": "ALL"],
                    ]
                ]
            ])
        guard let id = (value as? [String: Any])?["sessionId"] as? String else {
            throw HarnessError("no session")
        }
        session = "/session/\(id)"
    }

    /// Starts the driver. It finds a free port for IPv6 and then uses the same one for IPv4, which
    /// another program may have taken in between; it is then started again. Without IPv6 it takes
    /// no port itself, so a free one is given.
    private static func start(_ driver: String, _ handler: URL?) throws -> (ManagedProcess, UInt16)
    {
        var environment = try BrowserFonts.environment.get()
        if let handler {
            environment["PATH"] =
                "\(handler.path):\(ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin")"
        }
        var wanted: UInt16 = 0
        for _ in 0..<10 {
            let process = try ManagedProcess(driver, ["--port=\(wanted)"], environment: environment)
            let line = process.wait { lines in
                lines.first {
                    $0.contains("started successfully on port")
                        || $0.contains("Address already in use")
                }
            }
            guard let line else {
                throw HarnessError("the driver does not start: \(process.output)")
            }
            if let port = line.split(separator: " ").last.flatMap({ UInt16($0.filter(\.isNumber)) }
            ),
                line.contains("started successfully")
            {
                if port > 0 { return (process, port) }
                process.end()
                wanted = try Socket.listen().port
            }
        }
        throw HarnessError("the driver finds no port")
    }

    package func quit() {
        _ = try? call("DELETE", session)
        process.end()
        if let handler { try? FileManager.default.removeItem(at: handler) }
    }

    /// The desktop's `xdg-open` for this browser, which records the addresses that it gets.
    private static func makeHandler() throws -> URL {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(
            "postern-handler-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let program = folder.appendingPathComponent("xdg-open")
        try Data("#!/bin/sh\nprintf '%s\\n' \"$1\" >> '\(folder.path)/opened'\n".utf8).write(
            to: program)
        try FileManager.default.setAttributes(
            [.posixPermissions: 0o755], ofItemAtPath: program.path)
        return folder
    }

    /// The `number`th address that an app got by its scheme, counted from 1.
    package func opened(number: Int = 1) throws -> String {
        var lines: [Substring] = []
        _ = try comes {
            let text =
                handler.flatMap {
                    try? String(contentsOf: $0.appendingPathComponent("opened"), encoding: .utf8)
                } ?? ""
            lines = text.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
            return lines.count >= number
        }
        guard lines.count >= number else {
            throw HarnessError("the browser opened no app: \(try complaints())")
        }
        return String(lines[number - 1])
    }

    // MARK: Actions of a person

    package func open(_ url: String) throws { _ = try call("POST", session + "/url", ["url": url]) }

    package func click(_ selector: String) throws {
        _ = try call("POST", session + "/element/\(try element(selector))/click", [:])
    }

    /// Clicks twice, as fast as a person can, and waits until the page has gone. Its text is still
    /// there until then.
    package func doubleClick(_ selector: String) throws {
        let page = try element("html")
        let place: [String: Any] = [
            "type": "pointerMove", "duration": 0, "x": 0, "y": 0,
            "origin": ["element-6066-11e4-a52e-4f735466cecf": try element(selector)],
        ]
        let presses = (0..<2).flatMap { _ in
            [["type": "pointerDown", "button": 0], ["type": "pointerUp", "button": 0]]
        }
        let mouse: [String: Any] = ["type": "pointer", "id": "mouse", "actions": [place] + presses]
        _ = try call("POST", session + "/actions", ["actions": [mouse]])
        guard try comes({ (try? call("GET", session + "/element/\(page)/name")) == nil }) else {
            throw HarnessError("\(selector) was pressed twice and leads nowhere")
        }
    }

    package func type(_ text: String, into selector: String) throws {
        _ = try call("POST", session + "/element/\(try element(selector))/value", ["text": text])
    }

    /// Presses keys for the element with the focus; `Key` has those without a letter.
    package func press(_ keys: String) throws {
        let actions = keys.flatMap {
            [["type": "keyDown", "value": String($0)], ["type": "keyUp", "value": String($0)]]
        }
        _ = try call(
            "POST", session + "/actions",
            ["actions": [["type": "key", "id": "keyboard", "actions": actions]]])
    }

    package enum Key {
        package static let tab = "\u{E004}"
        package static let enter = "\u{E007}"
    }

    // MARK: Text that a person sees

    package var url: String { get throws { try call("GET", session + "/url") as? String ?? "" } }
    package func text(_ selector: String) throws -> String {
        try call("GET", session + "/element/\(try element(selector))/text") as? String ?? ""
    }

    /// Waits until an element contains this text: a click or a key begins to load a page and does
    /// not wait for it.
    package func shows(_ selector: String, _ text: String) throws -> Bool {
        try comes { try self.text(selector).hasPrefix(text) }
    }

    /// Waits until a page shows this, and reloads it until then: counts are written each second.
    package func shows(_ selector: String, _ text: String, at url: String) throws -> Bool {
        try comes {
            try open(url)
            return try self.text(selector).hasPrefix(text)
        }
    }

    /// Waits until the browser is at this address.
    package func arrives(at address: String) throws -> Bool {
        try comes { try self.url == address }
    }

    /// Waits until the browser is below this address.
    package func leads(to start: String) throws -> Bool {
        try comes { try self.url.hasPrefix(start) }
    }

    /// Repeats the check until it is true, for at most two minutes. An element of the page before
    /// counts as missing.
    private func comes(_ condition: () throws -> Bool) throws -> Bool {
        let end = Date(timeIntervalSinceNow: 120)
        while true {
            do {
                if try condition() { return true }
                if Date() > end { return false }
            } catch {
                if Date() > end { throw error }
            }
            usleep(20_000)
        }
    }
    package var focusedText: String {
        get throws {
            let found = try call("GET", session + "/element/active") as? [String: String]
            return try call("GET", session + "/element/\(found?.values.first ?? "")/text")
                as? String ?? ""
        }
    }

    /// A value that a script of the test computes. Scripts of pages do not run after
    /// `forbidScripts`.
    package func value(_ script: String) throws -> Any {
        try call("POST", session + "/execute/sync", ["script": script, "args": []])
    }

    /// Shows the whole page in a width in pixels.
    package func show(width: Int, dark: Bool) throws {
        // Without animation, as a colour between light and dark is visible too briefly to be
        // checked.
        let features = [
            ("prefers-color-scheme", dark ? "dark" : "light"), ("prefers-reduced-motion", "reduce"),
        ]
        try chrome(
            "Emulation.setEmulatedMedia",
            ["features": features.map { ["name": $0.0, "value": $0.1] }])
        try resize(width: width, height: 800)
        let height = try value("return document.documentElement.scrollHeight") as? Int ?? 800
        try resize(width: width, height: height)
    }

    /// The whole page as a PNG, in a width in pixels.
    package func screenshot(width: Int, dark: Bool) throws -> Data {
        try show(width: width, dark: dark)
        let text = try call("GET", session + "/screenshot") as? String ?? ""
        guard let data = Data(base64Encoded: text), data.starts(with: [0x89, 0x50, 0x4E, 0x47])
        else {
            throw HarnessError("no screenshot")
        }
        return data
    }

    package func resize(width: Int, height: Int) throws {
        try chrome(
            "Emulation.setDeviceMetricsOverride",
            ["width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500])
    }

    /// The reader's language, as the browser sends it to servers.
    package func accept(language: String) throws {
        try chrome("Network.enable", [:])
        try chrome("Network.setExtraHTTPHeaders", ["headers": ["Accept-Language": language]])
    }

    /// Makes the browser one that was never at the site of the open page.
    package func forgetCookies() throws { _ = try call("DELETE", session + "/cookie") }

    /// From now on pages run no scripts.
    package func forbidScripts() throws {
        try chrome("Emulation.setScriptExecutionDisabled", ["value": true])
    }

    /// The browser's complaints since the last call.
    package func complaints() throws -> [String] {
        let entries =
            try call("POST", session + "/se/log", ["type": "browser"]) as? [[String: Any]] ?? []
        return entries.compactMap { $0["message"] as? String }
    }

    /// Hosts to which pages sent requests since the last call.
    package func hostsAsked() throws -> Set<String> {
        let entries =
            try call("POST", session + "/se/log", ["type": "performance"]) as? [[String: Any]] ?? []
        return Set(
            entries.compactMap { entry -> String? in
                guard let text = entry["message"] as? String,
                    let event =
                        (try? JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])?[
                            "message"]
                        as? [String: Any],
                    event["method"] as? String == "Network.requestWillBeSent",
                    let request = (event["params"] as? [String: Any])?["request"] as? [String: Any],
                    let url = request["url"] as? String
                else { return nil }
                return URL(string: url).flatMap { url in url.host.map { "\($0):\(url.port ?? 0)" } }
            })
    }

    // MARK: An authenticator

    /// Adds an authenticator like that of a phone or a laptop (WebAuthn section 11): it verifies
    /// its user, and keeps passkeys.
    package func addAuthenticator() throws -> String {
        let options: [String: Any] = [
            "protocol": "ctap2", "transport": "internal", "hasResidentKey": true,
            "hasUserVerification": true,
            "isUserConsenting": true, "isUserVerified": true,
        ]
        guard let id = try call("POST", session + "/webauthn/authenticator", options) as? String
        else {
            throw HarnessError("the browser has no authenticator")
        }
        return "\(session)/webauthn/authenticator/\(id)"
    }

    /// Whether it recognises its user.
    package func setUserVerified(_ isVerified: Bool, _ authenticator: String) throws {
        _ = try call("POST", authenticator + "/uv", ["isUserVerified": isVerified])
    }

    /// Its passkeys, in a form that another authenticator can use.
    package func passkeys(_ authenticator: String) throws -> [[String: Any]] {
        try call("GET", authenticator + "/credentials") as? [[String: Any]] ?? []
    }

    /// Replaces all of its passkeys by one.
    package func replacePasskeys(_ authenticator: String, with passkey: [String: Any]) throws {
        _ = try call("DELETE", authenticator + "/credentials")
        _ = try call("POST", authenticator + "/credential", passkey)
    }

    // MARK: Popups

    /// Continues in the window that the page opened, and returns after `steps`, even if that window
    /// is closed.
    package func inPopup(_ steps: () throws -> Void) throws {
        let own = try call("GET", session + "/window") as? String ?? ""
        var popup: String?
        _ = try comes {
            popup = (try call("GET", session + "/window/handles") as? [String])?.first { $0 != own }
            return popup != nil
        }
        guard let popup else { throw HarnessError("no window was opened") }
        _ = try call("POST", session + "/window", ["handle": popup])
        defer { _ = try? call("POST", session + "/window", ["handle": own]) }
        try steps()
    }

    /// Closes the window that the page opened, as a person does.
    package func closePopup() throws { try inPopup { _ = try call("DELETE", session + "/window") } }

    // MARK: The protocol

    private func element(_ selector: String) throws -> String {
        let found =
            try call("POST", session + "/element", ["using": "css selector", "value": selector])
            as? [String: String]
        guard let id = found?.values.first else { throw HarnessError("there is no \(selector)") }
        return id
    }

    private func chrome(_ command: String, _ parameters: [String: Any]) throws {
        _ = try call("POST", session + "/goog/cdp/execute", ["cmd": command, "params": parameters])
    }

    @discardableResult
    private func call(_ method: String, _ path: String, _ body: [String: Any]? = nil) throws -> Any
    {
        let content = try body.map { try JSONSerialization.data(withJSONObject: $0) } ?? Data()
        let socket = try Socket.connect(port: port, timeout: 120)
        let head =
            "\(method) \(path) HTTP/1.1\r\nHost: 127.0.0.1:\(port)\r\nContent-Type: application/json\r\n"
            + "Content-Length: \(content.count)\r\nConnection: close\r\n\r\n"
        guard socket.send(Array(head.utf8) + Array(content)) else {
            throw HarnessError("the browser is gone: \(method) \(path)")
        }
        let answer = try Self.answer(socket)
        let object = try JSONSerialization.jsonObject(with: answer) as? [String: Any]
        let value = object?["value"] ?? NSNull()
        if let error = value as? [String: Any], let name = error["error"] as? String {
            throw HarnessError("\(method) \(path): \(name): \(error["message"] ?? "")")
        }
        return value
    }
    /// The body of an answer, of the length in its head.
    private static func answer(_ socket: Socket) throws -> Data {
        var received = Data()
        let end = Data("\r\n\r\n".utf8)
        while let octets = socket.receive(), !octets.isEmpty {
            received.append(contentsOf: octets)
            guard let head = received.range(of: end) else { continue }
            let text = String(decoding: received[..<head.lowerBound], as: UTF8.self).lowercased()
            guard
                let length = text.firstMatch(of: /content-length: *([0-9]+)/).flatMap({
                    Int($0.output.1)
                })
            else { continue }
            let body = received[head.upperBound...]
            if body.count >= length { return Data(body.prefix(length)) }
        }
        guard let head = received.range(of: end) else {
            throw HarnessError("the browser gave no answer")
        }
        return Data(received[head.upperBound...])
    }
}
