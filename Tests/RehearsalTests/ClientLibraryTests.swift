// The sandbox with the libraries that people use for Sign in with Apple: each is the backend of an
// app against a running sandbox.

import Foundation
import PostfixHarness
import TestSupport
import Testing

/// Python of `make test-tools` with all of the libraries; nil if it lacks one.
private let python: String? = {
    let own = Folders.package.appending(path: ".build/test-tools/bin/python3").path
    let imports =
        "import authlib, joserfc, jwt, requests, social_core.backends.apple, allauth.socialaccount.providers.apple, django"
    return [own, "/usr/bin/python3"].first {
        (try? ManagedProcess.run($0, ["-c", imports]))?.status == 0
    }
}()

@Suite(
    .blocking,
    .enabled(
        if: python != nil,
        "skipped: no python3 with Authlib, social-auth-core and django-allauth (make test-tools)"))
struct ClientLibraryTests {
    private static let tools = Folders.package.appending(path: "Tests/RehearsalTests/Tools")

    /// The scripts, and the number of checks in each of them.
    @Test(
        .timeLimit(.minutes(5)),
        arguments: [
            ("authlib_app", 60), ("social_core_app", 24), ("allauth_app", 22),
            ("notifications", 42),
        ])
    func clientLibraries_signInToRevocation_workWithSandbox(_ script: String, _ checks: Int) throws
    {
        let run = try ManagedProcess.run(
            try #require(python),
            [
                "-B", Self.tools.appending(path: script + ".py").path,
                try ManagedProcess.builtProduct("postern"),
            ])
        let lines = run.output.split(separator: "\n")
        #expect(run.status == 0, "\(lines.suffix(20).joined(separator: "\n"))")
        #expect(lines.count { $0.hasPrefix("ok ") } == checks)
        // No inbox in the log.
        #expect(!lines.contains { $0.contains(" notice ") && $0.contains("@") })
    }
}
