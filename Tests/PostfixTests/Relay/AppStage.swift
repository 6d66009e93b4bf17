// Apps' pages and the built-in sign-in page in a real browser.

import Foundation
import PostfixHarness
import RelayHarness
import TestSupport
import Testing

/// Postern, apps with pages in a folder of their own, and a browser.
final class AppStage {
    let fixture: RelayFixture
    let postern: String
    /// The apps' server, under their registered names: `com.example.juice`, and `com.example.page`,
    /// which has no backend.
    let app: String
    let browser: Browser
    private let server: ManagedProcess
    private let folder: URL
    private var letters = 0

    /// - Parameter scheme: an app's own scheme, which the browser passes to the desktop.
    init(opening scheme: String? = nil) throws {
        let (fixture, postern) = try home(host: "localhost") {
            $0.settings["sign_in.page"] = "built-in"
        }
        try fixture.addUser("anna", inboxes: ["anna@home.example"])
        let port = try FreePort.next()
        let app = "http://localhost:\(port)"
        try fixture.run([
            "app", "add", "juice", "com.example.juice", "--redirect-uri", app + "/back.html",
        ])
        try fixture.run([
            "app", "add", "juice", "com.example.page", "--redirect-uri", app + "/alone.html",
        ])
        try fixture.run(["app", "client", "juice", "com.example.page", "--public"])
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(
            "postern-app-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let pages = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appendingPathComponent("../Pages")
        func write(_ page: String, as name: String, mode: String = "") throws {
            var text = try String(contentsOf: pages.appendingPathComponent(page), encoding: .utf8)
            for (key, value) in ["postern": postern, "app": app, "mode": mode] {
                text = text.replacing("{{\(key)}}", with: value)
            }
            try text.write(
                to: folder.appendingPathComponent(name), atomically: true, encoding: .utf8)
        }
        try write("index.html", as: "popup.html", mode: "popup")
        try write("index.html", as: "redirect.html", mode: "redirect")
        try write("index.html", as: "back.html")
        for name in ["app.js", "foreign.html", "alone.html", "alone.js"] {
            try write(name, as: name)
        }
        let server = try ManagedProcess(
            "/usr/bin/python3",
            [
                "-u", "-m", "http.server", "\(port)", "--bind", "127.0.0.1", "--directory",
                folder.path,
            ])
        try server.waitForLine(containing: "Serving HTTP")
        browser = try Browser(opening: scheme.map { Browser.AppScheme($0, from: postern) })
        (self.fixture, self.postern, self.app, self.folder, self.server) = (
            fixture, postern, app, folder, server
        )
    }

    func end() {
        browser.quit()
        server.end()
        fixture.stop()
        try? FileManager.default.removeItem(at: folder)
    }

    /// Signs anna in on the open page, and continues to the app.
    func signIn() throws {
        try browser.type("anna@home.example", into: "#email")
        try browser.click("form[action='/me/sign-in'] button")
        letters += 1
        let message = try fixture.arrival(for: "anna@home.example", number: letters)
        let code = try #require(message.value("Subject")?.firstMatch(of: /[0-9]{3} [0-9]{3}/))
            .output
        #expect(try browser.shows("label[for=code]", ""))
        try browser.type(String(code), into: "#code")
        try browser.click("form[action='/me/sent'] button")
        #expect(try browser.shows(".choices", ""))
    }

    /// Waits until an element of the open page contains this text.
    func expect(
        _ selector: String, _ text: String, at location: SourceLocation = #_sourceLocation
    ) throws {
        let comes = try browser.shows(selector, text)
        let (said, page) = (try browser.text(selector), try browser.url)
        #expect(comes, "\(page) says \(said)", sourceLocation: location)
    }
}
