/** Where a page stands in the frame. */
export const CONTENT = 'content'

/** The next Tab begins at the page, not at the frame around it. */
export const focusContent = (): void => document.getElementById(CONTENT)?.focus({ preventScroll: true })
