// Expressions and policy files.

import CEL

@testable import RiskPolicy

enum PolicyFuzzing {
    static let expression: FuzzTarget = { input in
        let text = String(decoding: input, as: UTF8.self)
        for isChecked in [true, false] {
            guard
                let resolved = try? Checker.resolve(
                    text, in: ExpressionScope(), isChecked: isChecked)
            else { continue }
            var interpreter = Interpreter(variables: ExpressionVariables())
            _ = try? interpreter.evaluate(resolved)
        }
    }

    static let policy: FuzzTarget = { input in
        var options = PolicyLoadOptions()
        options.generatedInputs = 20
        _ = try? PolicyLoader.load(String(decoding: input, as: UTF8.self), options: options)
    }
}
