// postern verify attestation and postern app attestation, as an administrator types them.

import Foundation
import PasskeyTesting
import TestSupport
import Testing

@Suite(.blocking) struct VerifyAttestationTests {
    private func object(_ line: some StringProtocol) throws -> [String: Any] {
        try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
    }

    @Test func batch_everyLine_isAnsweredInOrder() throws {
        let runner = try CommandRunner()
        let device = try TestDevice(TestDevice.Authority())
        let clientData = Array("hello".utf8)
        func line(_ id: Int, counter: Int) throws -> String {
            let members: [String: Any] = [
                "id": id, "app_id": device.appID,
                "client_data": Data(clientData).base64EncodedString(), "counter": counter,
                "assertion": Data(try device.assertion(clientData, counter: 2))
                    .base64EncodedString(),
                "public_key": Data(device.point).base64EncodedString(),
                "key_id": Data(device.keyID).base64EncodedString(),
            ]
            return String(
                decoding: try JSONSerialization.data(withJSONObject: members), as: UTF8.self)
        }
        let input =
            try [line(1, counter: 1), "{", line(3, counter: 2)].joined(separator: "\n") + "\n"
        let result = try runner.run(["verify", "attestation", "--batch"], input: input)
        #expect(result.status == 0 && result.errors == "")
        let answers = try result.output.split(separator: "\n").map { try object($0) }
        #expect(answers.map { $0["valid"] as? Bool } == [true, false, false])
        #expect(answers.map { $0["id"] as? Int } == [1, nil, 3])
        #expect(answers[0]["counter"] as? Int == 2)
        #expect((answers[2]["error"] as? String)?.hasPrefix("counter: ") == true)
        #expect(try runner.run(["verify", "attestation"], input: line(1, counter: 1)).status == 0)
        #expect(try runner.run(["verify", "attestation"], input: line(1, counter: 2)).status == 65)
    }

    /// A line must not be read into memory in full, because it may have no end.
    @Test func batch_lineTooLong_isAnsweredWithError() throws {
        let runner = try CommandRunner()
        let long = String(repeating: "a", count: 3_000_000)
        for command in ["attestation", "passkey"] {
            let result = try runner.run(
                ["verify", command, "--batch"], input: "\(long)\n \t\n{\"id\":2}\n{\"id\":3}")
            let answers = try result.output.split(separator: "\n").map { try object($0) }
            #expect(answers.map { $0["id"] as? Int } == [nil, 2, 3])
            #expect(
                (answers[0]["error"] as? String)?.contains("longer than 1048576 octets") == true)
        }
    }

    /// It must not trap.
    @Test func batch_outputNotWritable_ends() throws {
        let runner = try CommandRunner()
        let (input, errors) = (
            runner.folder.appendingPathComponent("in"),
            runner.folder.appendingPathComponent("errors")
        )
        try Data("{\"id\":1}\n".utf8).write(to: input)
        for command in ["attestation", "message", "passkey"] {
            let run = try ProgramRun([
                "/bin/sh", "-c",
                "exec \"$0\" verify \(command) --batch < \"$1\" > /dev/full 2> \"$2\"",
                CommandRunner.executable.path,
                input.path, errors.path,
            ])
            #expect(run.status == 74, "\(command)")
            let said = try String(contentsOf: errors, encoding: .utf8)
            #expect(
                said == "postern: standard output: no space left on device\n", "\(command): \(said)"
            )
        }
    }

    @Test func appAttestation_addedAndRemoved_isListed() throws {
        let runner = try CommandRunner.initialised()
        try runner.succeed("team", "add", "juice", "--name", "The Juice Company")
        try runner.succeed("app", "add", "juice", "com.juice")
        let root = try TestDevice.Authority().certificate
        let (der, pem) = (
            runner.folder.appendingPathComponent("root.der"),
            runner.folder.appendingPathComponent("root.pem")
        )
        try Data(root).write(to: der)
        let body = Data(root).base64EncodedString(options: [
            .lineLength64Characters, .endLineWithLineFeed,
        ])
        try Data(
            "A certificate.\n-----BEGIN CERTIFICATE-----\n\(body)\n-----END CERTIFICATE-----\n".utf8
        ).write(to: pem)
        let text = runner.folder.appendingPathComponent("root.txt")
        try Data("No certificate.\n".utf8).write(to: text)
        let appID = "0352187391.com.juice"
        try runner.succeed(
            "app", "attestation", "add", "juice", "com.juice", "--app-id", appID, "--root", pem.path
        )
        try runner.succeed(
            "app", "attestation", "add", "juice", "com.juice", "--app-id", appID, "--root",
            der.path, "--environment",
            "development")
        let listed = try runner.succeed(
            "app", "attestation", "list", "juice", "com.juice", "--json")
        let rows = try #require(
            try JSONSerialization.jsonObject(with: Data(listed.utf8)) as? [[String: Any]])
        #expect(rows.map { $0["environment"] as? String } == ["development", "production"])
        #expect(rows.allSatisfy { $0["app_id"] as? String == appID })
        try runner.succeed("app", "attestation", "remove", "juice", "com.juice", "--app-id", appID)
        try runner.fail(
            "app", "attestation", "remove", "juice", "com.juice", "--app-id", appID, status: 66,
            saying: "has no such app id")
        try runner.fail(
            "app", "attestation", "add", "juice", "com.juice", "--app-id", "com.juice", "--root",
            pem.path, status: 65,
            saying: "TEAMID.bundle.id")
        try runner.fail(
            "app", "attestation", "add", "juice", "com.juice", "--app-id", appID, "--root",
            text.path, status: 65,
            saying: "PEM or DER")
        try runner.fail(
            "app", "attestation", "list", "juice", "com.soda", status: 66, saying: "no such app")
    }
}
