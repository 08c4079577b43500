/** The YAML of any object in a dialog, from the ⋮ menu. */
import { lazy, Suspense } from 'react'
import type { KubeObject } from '../../kube'
import { Dialog } from '../popup/Dialog'

const YamlPanel = lazy(() => import('./YamlPanel'))

export function YamlDialog({ object, onClose }: { object: KubeObject; onClose: () => void }) {
  return (
    <Dialog title={`${object.kind} ${object.metadata.name}`} onCancel={onClose} footer={null} width={900} destroyOnHidden>
      <Suspense fallback={null}>
        <YamlPanel object={object} />
      </Suspense>
    </Dialog>
  )
}
