// Signing in at a running `postern serve` with an OpenID provider of another project, as a person
// does in a browser.

import Foundation
import PostfixHarness
import TestSupport
import Testing

/// LemonLDAP::NG of Debian with its demonstration users, on a port of this machine.
private final class LemonLDAP {
    static let program = "/usr/bin/starman"
    static let portal = "/usr/share/lemonldap-ng/portal/htdocs/index.psgi"
    private static let standard = "/var/lib/lemonldap-ng/conf/lmConf-1.json"
    static var isInstalled: Bool {
        [program, portal, standard].allSatisfy(FileManager.default.isReadableFile(atPath:))
    }

    let issuer: String
    let secret = "a secret/+ of ours"
    private let process: ManagedProcess

    /// - Parameter redirectURI: the URI to which users return.
    init(folder: URL, redirectURI: String) throws {
        let port = try FreePort.next()
        issuer = "http://localhost:\(port)/"
        let folder = folder.appendingPathComponent("lemonldap")
        for name in ["conf", "cache", "sessions/lock", "persistent/lock"] {
            try FileManager.default.createDirectory(
                at: folder.appendingPathComponent(name), withIntermediateDirectories: true)
        }
        let key = folder.appendingPathComponent("key.pem").path
        for arguments in [
            ["genrsa", "-out", key, "2048"], ["rsa", "-in", key, "-pubout", "-out", key + ".pub"],
        ] {
            try #require(try ManagedProcess.run("/usr/bin/openssl", arguments).status == 0)
        }
        let standard = try JSONSerialization.jsonObject(
            with: Data(contentsOf: URL(fileURLWithPath: Self.standard)))
        var settings = try #require(standard as? [String: Any])
        func sessions(_ name: String) -> [String: String] {
            let path = folder.appendingPathComponent(name).path
            return ["Directory": path, "LockDirectory": path + "/lock"]
        }
        settings.merge([
            "cfgNum": 1, "portal": issuer, "domain": "localhost", "securedCookie": 0,
            "authentication": "Demo", "userDB": "Same",
            "passwordDB": "Demo", "requireToken": 0, "portalCheckLogins": 0,
            "issuerDBOpenIDConnectActivation": 1,
            "oidcServiceAllowAuthorizationCodeFlow": 1, "oidcServiceKeyIdSig": "k1",
            "oidcServicePrivateKeySig": try String(contentsOfFile: key, encoding: .utf8),
            "oidcServicePublicKeySig": try String(contentsOfFile: key + ".pub", encoding: .utf8),
            "oidcRPMetaDataOptions": [
                "postern": [
                    "oidcRPMetaDataOptionsClientID": "postern",
                    "oidcRPMetaDataOptionsClientSecret": secret,
                    "oidcRPMetaDataOptionsRedirectUris": redirectURI,
                    "oidcRPMetaDataOptionsIDTokenSignAlg": "RS256",
                    "oidcRPMetaDataOptionsBypassConsent": 1, "oidcRPMetaDataOptionsRequirePKCE": 1,
                ]
            ], "oidcRPMetaDataExportedVars": ["postern": ["email": "mail", "name": "cn"]],
            "globalStorage": "Apache::Session::File", "globalStorageOptions": sessions("sessions"),
            "persistentStorage": "Apache::Session::File",
            "persistentStorageOptions": sessions("persistent"),
        ]) { $1 }
        try JSONSerialization.data(withJSONObject: settings).write(
            to: folder.appendingPathComponent("conf/lmConf-1.json"))
        let ini = folder.appendingPathComponent("lemonldap-ng.ini")
        try Data(
            """
            [all]
            logLevel=warn
            [configuration]
            type=File
            dirName=\(folder.path)/conf
            localStorage=Cache::FileCache
            localStorageOptions={'namespace'=>'c','default_expires_in'=>600,'cache_root'=>'\(folder.path)/cache','cache_depth'=>3}
            [portal]
            staticPrefix=/static
            templateDir=/usr/share/lemonldap-ng/portal/templates
            languages=en

            """.utf8
        ).write(to: ini)
        process = try ManagedProcess(
            Self.program,
            [
                "--listen", "127.0.0.1:\(port)", "--workers", "2", "--disable-keepalive",
                Self.portal,
            ],
            environment: ["LLNG_DEFAULTCONFFILE": ini.path])
        try process.waitForLine(containing: "Binding to TCP port")
    }

    func end() {
        process.signal(SIGTERM)
        _ = try? process.waitForExit()
    }
}

@Suite(
    .blocking,
    .enabled(
        if: LemonLDAP.isInstalled && Browser.driver != nil,
        "skipped: no LemonLDAP::NG or no Chromium (make test-tools)"))
struct UpstreamProviderTests {
    @Test func upstreamSignIn_userOfLemonLDAP_signsUpAndIn() throws {
        let runner = try CommandRunner.initialised()
        let url = "http://localhost:\(try FreePort.next())"
        let provider = try LemonLDAP(
            folder: runner.folder, redirectURI: "\(url)/me/upstream/callback")
        defer { provider.end() }
        let secret = runner.folder.appendingPathComponent("upstream-secret")
        try Data("\(provider.secret)\n".utf8).write(to: secret)
        var settings = [
            "milter.socket=unix:\(runner.folder.path)/milter",
            "http.listen=\(url.dropFirst("http://".count).replacing("localhost", with: "127.0.0.1"))",
            "http.public_url=\(url)", "sign_in.page=built-in", "sign_in.sign_up=open",
            "sign_in.upstream.issuer=\(provider.issuer)",
            "sign_in.upstream.client_id=postern", "sign_in.upstream.secret_file=\(secret.path)",
            "sign_in.upstream.name=The Directory", "sign_in.upstream.addresses=all",
        ]
        let serve = {
            ["serve", "--config", runner.configuration] + settings.flatMap { ["--set", $0] }
        }
        // A secret that other users can read is refused.
        try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: secret.path)
        let refused = try ManagedProcess.run(CommandRunner.executable.path, serve())
        #expect(
            refused.status == 78 && refused.output.contains("sign_in.upstream.secret_file"),
            "\(refused.output)")
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: secret.path)
        settings.append("sign_in.upstream.links=never")
        let server = try ManagedProcess(CommandRunner.executable.path, serve())
        defer {
            server.signal(SIGTERM)
            _ = try? server.waitForExit()
        }
        try server.waitForLine(containing: "serving")
        try server.waitForLine(containing: "listening for HTTP")

        for round in 1...2 {
            let browser = try Browser()
            defer { browser.quit() }
            try browser.open("\(url)/me")
            try #require(try browser.shows("a.button", "Sign in with The Directory"))
            try browser.click("a.button")
            try #require(try browser.shows("input[name=password]", ""))
            try browser.type("dwho", into: "input[name=user]")
            try browser.type("dwho", into: "input[name=password]")
            try browser.click("button[type=submit]")
            try #require(try browser.shows(".who bdi", "dwho@badwolf.org"))
            try browser.open("\(url)/me/security")
            try #require(try browser.shows("#sessions", ""))
            #expect(try browser.text("#sessions + ul").contains("with The Directory"))
            let users = try runner.succeed("user", "list").split(separator: "\n")
            #expect(users.filter { $0.contains("u-") }.count == 1, "round \(round): \(users)")
        }
        for secret in [provider.secret, "badwolf", "dwho"] {
            #expect(!server.output.contains(secret))
        }
    }
}
