// Runs leakcheck.py over many messages in one process.

import Foundation
import TestSupport

enum LeakOracle {
    struct Item {
        let id: String
        let address: String
        let message: [UInt8]
    }

    private static let program = """
        import sys, json, base64, importlib.util
        spec = importlib.util.spec_from_file_location('leakcheck', sys.argv[1])
        leakcheck = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(leakcheck)
        for line in open(sys.argv[2]):
            item = json.loads(line)
            hits = leakcheck.check(base64.b64decode(item['message']), item['address'])
            if hits: print(json.dumps({'id': item['id'], 'hits': [path + ' ' + form for path, form in hits[:4]]}), flush=True)
        """

    /// The findings of leakcheck.py, by id.
    static func run(_ items: [Item]) throws -> [String: [String]] {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(
            "postern-leak-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let list = folder.appendingPathComponent("messages.jsonl")
        var data = Data()
        for item in items {
            let object = [
                "id": item.id, "address": item.address,
                "message": Data(item.message).base64EncodedString(),
            ]
            data += try JSONSerialization.data(withJSONObject: object) + Data("\n".utf8)
        }
        try data.write(to: list)
        let output = try ProgramRun.succeed([
            "python3", "-c", program, Corpus.leakcheck.path, list.path,
        ]).standardOutput
        var hits: [String: [String]] = [:]
        for line in output.split(separator: 0x0A) {
            guard let object = try JSONSerialization.jsonObject(with: line) as? [String: Any],
                let id = object["id"] as? String
            else { continue }
            hits[id] = object["hits"] as? [String]
        }
        return hits
    }
}
