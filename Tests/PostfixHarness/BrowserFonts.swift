// The fonts of the tests' browser: only DejaVu, regardless of the machine's other fonts, so that
// lines break at the same places everywhere.

import Foundation

enum BrowserFonts {
    /// Debian's fonts-dejavu-core.
    private static let folder = "/usr/share/fonts/truetype/dejavu"
    /// For pictures that a person looks at, `make screenshots` also has Chinese, Japanese and
    /// Korean letters.
    private static let others = "/usr/share/fonts/opentype/noto"

    /// The variables of a program that may see only these fonts. The folder is kept until the
    /// process ends: all of its browsers share the cache.
    static let environment: Result<[String: String], any Error> = Result {
        guard FileManager.default.fileExists(atPath: folder + "/DejaVuSans.ttf") else {
            throw HarnessError("fonts-dejavu-core is not installed (make test-tools)")
        }
        let place = FileManager.default.temporaryDirectory.appendingPathComponent(
            "postern-fonts-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
        let file = place.appendingPathComponent("fonts.conf")
        try Data(configuration(cache: place.path).utf8).write(to: file, options: .atomic)
        atexit { BrowserFonts.remove() }
        return ["FONTCONFIG_FILE": file.path]
    }

    private static func remove() {
        guard let file = try? environment.get()["FONTCONFIG_FILE"] else { return }
        try? FileManager.default.removeItem(
            at: URL(fileURLWithPath: file).deletingLastPathComponent())
    }

    private static func configuration(cache: String) -> String {
        let all = ProcessInfo.processInfo.environment["POSTERN_SCREENSHOTS"] == "all"
        let folders = ([folder] + (all ? [others] : [])).map { "<dir>\($0)</dir>" }.joined()
        let families = [
            ("serif", "DejaVu Serif"), ("sans-serif", "DejaVu Sans"), ("system-ui", "DejaVu Sans"),
            ("monospace", "DejaVu Sans Mono"), ("ui-monospace", "DejaVu Sans Mono"),
        ]
        let aliases = families.map {
            "<alias binding=\"same\"><family>\($0)</family><prefer><family>\($1)</family></prefer></alias>"
        }
        return """
            <?xml version="1.0"?>
            <!DOCTYPE fontconfig SYSTEM "urn:fontconfig:fonts.dtd">
            <fontconfig>\(folders)<cachedir>\(cache)/cache</cachedir>\(aliases.joined())</fontconfig>

            """
    }
}
