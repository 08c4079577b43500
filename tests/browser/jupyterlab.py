"""What a person does in JupyterLab, which the console has opened in a tab of its own."""

from __future__ import annotations

from playwright.sync_api import Page, expect

TRAINING_MS = 400_000


class JupyterLab:
    def __init__(self, page: Page) -> None:
        """`page` may still say that the notebook is starting: it opens by itself."""
        self.page = page
        expect(page.locator("#jupyter-main-logo, #jp-MainLogo").first).to_be_visible(timeout=180_000)

    def run_in_a_cell(self, code: str, until: str) -> str:
        """Notebook > Python 3, paste, run; what the cell has printed when `until` appears in it."""
        self._launch("Notebook", "Python 3")
        cell = self.page.locator(".jp-NotebookPanel:visible .jp-CodeCell .cm-content").first
        cell.click()
        self._paste(code)
        # What is run before the kernel has started is lost.
        expect(self.page.get_by_text("| Idle")).to_be_visible(timeout=120_000)
        self.page.locator(".jp-NotebookPanel:visible [data-command='notebook:run-cell-and-select-next']").first.click()
        output = self.page.locator(".jp-NotebookPanel:visible .jp-OutputArea").first
        expect(output).to_contain_text(until, timeout=TRAINING_MS)
        return output.inner_text()

    def write_a_file(self, name: str, content: str) -> None:
        """Other > Python File, paste, save under its name."""
        self._launch("Other", "Python File")
        editor = self.page.locator(".jp-FileEditor:visible .cm-content").first
        editor.click()
        self._paste(content)
        self.page.keyboard.press("Control+S")
        dialog = self.page.locator(".jp-Dialog")
        dialog.locator("input").first.fill(name)
        dialog.locator("button.jp-mod-accept").click()
        expect(self.page.locator(".jp-DirListing-itemText", has_text=name)).to_be_visible()

    def move_away(self, folder: str) -> None:
        """Other > Terminal: all that the tutorial has made goes into a folder of its own, as it asks at its end."""
        self.page.bring_to_front()
        self._launch("Other", "Terminal")
        terminal = self.page.locator(".jp-Terminal:visible .xterm-screen").first
        terminal.click()
        # Spelled so that the line itself does not hold the word that says it is done.
        self.page.keyboard.type(f"mkdir {folder} && mv $(ls | grep -v {folder}) {folder}/; touch moved-$((40+2))\n")
        expect(self.page.locator(".jp-DirListing-itemText", has_text="moved-42")).to_be_visible()
        self.page.keyboard.type("rm moved-*\n")
        expect(self.page.locator(".jp-DirListing-itemText", has_text="moved-42")).to_be_hidden()

    def _launch(self, section: str, what: str) -> None:
        self._dismiss_false_alarm()
        if not self.page.locator(".jp-Launcher:visible").count():
            self.page.locator(
                "[data-command='filebrowser:create-main-launcher'], [data-command='launcher:create']"
            ).first.click()
        group = self.page.locator(".jp-Launcher:visible .jp-Launcher-section", has_text=section).first
        group.locator(".jp-LauncherCard", has_text=what).first.click()

    def _dismiss_false_alarm(self) -> None:
        """Jupyter that lists a folder while a file in it gets its name says that there is no such folder."""
        alarm = self.page.locator(".jp-Dialog", has_text="Directory not found")
        if alarm.count():
            alarm.locator("button").last.click()
            expect(alarm).to_be_hidden()

    def _paste(self, text: str) -> None:
        self.page.evaluate("text => navigator.clipboard.writeText(text)", text)
        self.page.keyboard.press("Control+V")
