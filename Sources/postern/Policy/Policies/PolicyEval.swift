// `postern policy eval`: evaluates expressions for authors, one by one or as JSON lines.

import ArgumentParser
import CEL
import Foundation
import RiskPolicy

struct PolicyEval: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "eval",
        abstract: "Evaluate an expression.",
        discussion: """
            With --policy the expression may use that policy's signals, constants and lists, and --input is a request as in a \
            test's input. Without it, --input gives variables as a YAML or JSON mapping.

            With --batch, each line of the input is a JSON object {"id", "expr", "bindings", "type_env", "disable_check"} with \
            typed values ({"int":"5"}), and each line of the output is {"id", "value"} or {"id", "error"}.
            """)

    @Argument(help: "The expression; not with --batch.")
    var expression: String?

    @Option(
        help: "A file with variables, a request, or the lines of --batch; - for standard input.",
        completion: .file(),
        transform: filePath)
    var input: String?

    @Option(
        help: ArgumentHelp(
            "A policy whose names may be used: a folder, the name of an active one, or the beginning of a hash."
        ),
        completion: .directory, transform: filePath)
    var policy: String?

    @Flag(help: "Read cases as JSON lines from --input or standard input.")
    var batch = false

    @Flag(help: "Print the value in typed JSON.")
    var json = false

    @OptionGroup var installation: InstallationOptions

    func validate() throws {
        if batch, expression != nil || policy != nil {
            throw ValidationError("--batch takes neither an expression nor --policy.")
        }
        if !batch, expression == nil {
            throw ValidationError(
                "Give an expression, or use --batch. One that begins with - goes behind --")
        }
    }

    func run() throws {
        guard let expression else { return try evaluateLines() }
        let result =
            try policy.map {
                try evaluate(expression, with: ReferredPolicy($0, in: installation).policy)
            } ?? evaluate(expression)
        switch result {
        case .success(let value):
            if json {
                guard let object = value.typedJSON else {
                    throw CommandError.data("the value is too large to print")
                }
                print(try Self.line(object))
            } else {
                print(value.text)
            }
        case .failure(.fault(let fault)):
            ErrorOutput.write(fault.text(in: expression) + "\n")
            throw ExitCode.failure
        case .failure(let failure):
            ErrorOutput.write("error: \(failure.message)\n")
            throw ExitCode.failure
        }
    }

    private func evaluate(_ expression: String) throws -> Result<CELValue, ExpressionCaseFailure> {
        var variables: [String: CELValue] = [:]
        if let input {
            let text = try PolicyFolder.read(input)
            variables = try reporting { () throws(PolicyRefusal) in
                try CELValue.variables(text, file: input)
            }
        }
        return ExpressionCase(expression: expression, bindings: variables).evaluate(zones: .system)
    }

    private func evaluate(
        _ expression: String, with policy: Policy
    ) throws -> Result<CELValue, ExpressionCaseFailure> {
        guard
            var question = CELTimestamp(seconds: Int64(Date().timeIntervalSince1970)).map({
                policy.makeInput(event: .signUp, now: $0)
            })
        else { throw CommandError.data("the clock is out of range") }
        if let input {
            let text = try PolicyFolder.read(input)
            question = try reporting { () throws(PolicyRefusal) in
                try PolicyTestSuite.input(text, file: input, policy: policy)
            }
        }
        do throws(ExpressionFault) {
            let resolved = try Checker.resolve(expression, in: policy.scope)
            return policy.evaluate(resolved, question).mapError(ExpressionCaseFailure.error)
        } catch {
            return .failure(.fault(error))
        }
    }

    // MARK: Lines

    private static func line(_ object: [String: Any]) throws -> String {
        let options: JSONSerialization.WritingOptions = [.sortedKeys, .withoutEscapingSlashes]
        return String(
            decoding: try JSONSerialization.data(withJSONObject: object, options: options),
            as: UTF8.self)
    }

    private func evaluateLines() throws {
        let text = try PolicyFolder.read(input ?? "-")
        // Split by octets: a Unicode line separator inside a string does not end the line.
        for line in text.utf8.split(separator: UInt8(ascii: "\n"))
        where !line.allSatisfy({ $0 <= 0x20 }) {
            print(try Self.line(answer(Data(line))))
        }
    }

    private func answer(_ line: Data) -> [String: Any] {
        guard let json = try? JSONSerialization.jsonObject(with: line) as? [String: Any] else {
            return ["id": NSNull(), "error": "not a JSON object"]
        }
        let id = json["id"] ?? NSNull()
        guard let expressionCase = ExpressionCase(json: json) else {
            return ["id": id, "error": "malformed case"]
        }
        switch expressionCase.evaluate(zones: .system) {
        case .success(let value):
            guard let typed = value.typedJSON else {
                return ["id": id, "error": "the value is too large to print"]
            }
            return ["id": id, "value": typed]
        case .failure(let failure):
            return ["id": id, "error": failure.message]
        }
    }
}
